"""Tools that a policy calls, over the Model Context Protocol: `base` says what a tool is, a file a toolset runs it,
`server` serves toolsets, `sessions` calls them from an episode and survives their death.
"""
