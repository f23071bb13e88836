"""What an episode may spend and where its tools run: settings of curation, of `solve`, and of a policy's own folder."""

from typing import Literal

from pydantic import Field, model_validator

from schemas.base import Options


class ContextOptions(Options):
    """How a context is kept inside its window."""

    mode: Literal["off", "drop", "summarise"] = "off"
    """`off` ends the episode where the window does; `drop` drops documents; `summarise` first asks the policy for its notes."""
    keep: float = Field(default=0.6, gt=0, lt=1)
    """Share of the window that may be full after a rewrite."""
    memory: float = Field(default=0.15, gt=0, lt=0.5)
    """Share of the window for plan, notes and sources, and for a summary while it is written."""
    short: int = Field(default=30, ge=1)
    """Words that are left of a document when it is cut."""


class Limits(Options):
    """What one episode may spend."""

    max_turns: int = Field(default=12, ge=1)
    """Turns; the last one can only answer, its calls are not made."""
    max_tokens: int = Field(default=128, ge=1)
    """Tokens a turn may sample. A turn that is cut ends the episode: `max_tokens`, or `context_overflow` if the window cut it."""
    context: int = Field(default=2048, ge=1)
    """Tokens of the window: of the whole episode, what is shown included, where nothing is dropped."""
    management: ContextOptions = ContextOptions()
    shown_errors: int = Field(default=1, ge=0)
    """Format errors the policy is told about and may recover from; the next one ends the episode. 0 ends it at the first."""
    repeats: int = Field(default=3, ge=1)
    """Turns in a row that may make the very same calls; one more ends the episode with `loop`."""

    def over(self, built: "Limits") -> "Limits":
        """These limits where they were set, and those of `built` where not."""
        mine, management = self.model_dump(exclude_unset=True), self.management.model_dump(exclude_unset=True)
        whole = built.model_dump() | mine
        whole["management"] = built.management.model_dump() | management
        return Limits.model_validate(whole)

    @model_validator(mode="after")
    def _room_for_a_turn(self) -> "Limits":
        if not {"max_tokens", "context", "management"} <= self.model_fields_set:
            return self  # what is not said here is said elsewhere, see `over`
        managed = self.management.mode != "off"
        kept = int((self.management.keep + self.management.memory) * self.context) if managed else 0
        if kept + self.max_tokens > self.context:
            beside, other = (" beside what is kept", " or management.keep") if managed else ("", "")
            raise ValueError(
                f"max_tokens={self.max_tokens}: a window of {self.context} is too small for it{beside}; "
                f"raise context, or lower max_tokens{other}"
            )
        return self


class ToolServer(Options):
    """A server of the Model Context Protocol: the addresses of equal replicas, or a command that is started here."""

    name: str = Field(min_length=1)
    """For messages."""
    urls: tuple[str, ...] = ()
    """Streamable HTTP, such as `http://127.0.0.1:8000/mcp`. A session that loses one replica goes on in another."""
    command: tuple[str, ...] = ()
    """A program that speaks the protocol on its standard streams, and its arguments."""
    replicas: int = Field(default=1, ge=1, le=256)
    """How many times `command` is started."""

    @model_validator(mode="after")
    def _one_way(self) -> "ToolServer":
        if bool(self.urls) == bool(self.command):
            given = "both" if self.urls else "neither"
            raise ValueError(f"urls and command: {given} given; a tool server has the one or the other")
        if self.urls and self.replicas != 1:
            raise ValueError(f"replicas={self.replicas}: is for command; replicas at addresses are listed in urls")
        return self


class ToolOptions(Options):
    """Where an episode's tools run, and how long a call may take."""

    servers: tuple[ToolServer, ...] = ()
    """Servers besides our own; every task is offered their tools. A tool that does not say it only reads is never called twice."""
    replicas: int = Field(default=1, ge=0, le=256)
    """Processes of our own server. 0 calls our tools in this process, for an eighth of the processor time; not beside `servers`."""
    call_seconds: float = Field(default=60.0, gt=0, le=86400)
    """One try of a call. A tool's own time limits must lie below it."""
    total_seconds: float = Field(default=180.0, gt=0, le=86400)
    """A call with every try, restart and replay; then the tool is down and the episode ends."""
    pages: str | None = None
    """Where search and browser look instead of in the task's world: a folder of HTML, a `.zim` file, or `http` for the web."""
    hosts: tuple[str, ...] = ()
    """Hosts that `http` may reach though their addresses are private."""
    deny: tuple[str, ...] = ()
    """Pages that do not exist for a policy: ids or URLs, with `*` at the end for all that begin so, or `sha256:...` of a text."""
    isolation: Literal["bubblewrap", "none"] = "bubblewrap"
    """What keeps a policy's code apart from this machine. `none` runs it unprotected, as the user who starts this."""
    code_seconds: float = Field(default=10.0, gt=0, le=3600)
    """Time of one call of `python`, which is below `call_seconds`."""
    code_memory: int = Field(default=512, ge=64, le=2**20)
    """Memory of one session of `python`, in MiB."""
    heartbeat_seconds: float = Field(default=10.0, gt=0, le=3600)
    """A server that gives no sign of life for so long is given up, and restarted where it is ours."""

    @model_validator(mode="after")
    def _here_or_served(self) -> "ToolOptions":
        if self.servers and not self.replicas:
            raise ValueError(
                "replicas=0: runs our tools in this process, which servers cannot be beside; use at least 1"
            )
        return self

    @model_validator(mode="after")
    def _a_try_fits(self) -> "ToolOptions":
        if self.call_seconds > self.total_seconds:
            raise ValueError(f"call_seconds={self.call_seconds:g} is above total_seconds={self.total_seconds:g}")
        if self.code_seconds >= self.call_seconds:
            raise ValueError(f"code_seconds={self.code_seconds:g} is not below call_seconds={self.call_seconds:g}")
        return self
