"""What may be called, and what the model sees: values, JSON and schemas, tools, scopes, hooks. Never imports trio."""

from ._argument_text import parse_argument_text, unwrap_double_encoded
from ._canonical import canonical_text
from ._claims import ANY, EXCLUSIVE, INDEPENDENT, PARALLEL, Claims, Keys
from ._classify import classify
from ._content import ContentBlock, ImageBlock, OtherBlock, TextBlock, as_content, block_from_json, block_to_json
from ._context import (
    ApprovalRequest,
    Approver,
    AroundHook,
    CallToken,
    CallView,
    Deadline,
    DispatchView,
    Guard,
    PendingCall,
    PostHook,
    PreHook,
    ResultObserver,
    RunContext,
)
from ._decisions import UNSET, Accept, Allow, ApprovalOutcome, Ask, Block, Deny, PostDecision, PreDecision
from ._definitions import (
    Arguments,
    Output,
    ToolDefinition,
    check_valid,
    define_raw_tool,
    define_tool,
    render_as_text,
    soft_present,
)
from ._explain import Explanation
from ._json import (
    FrozenDict,
    FrozenList,
    JsonObject,
    JsonValue,
    freeze,
    is_json,
    snapshot,
    thaw,
)
from ._raw_schema import compile_raw_validator
from ._registration import HookRegistration, Registration
from ._registry import Registry
from ._schema_check import check_object_schema, check_schema
from ._schema_dsl import parameters_to_json_schema, value_to_json_schema
from ._scopes import Scope
from ._status import CallState, CallStatus
from ._timings import HookSpan, Timings, Wait
from ._tool import tool
from ._validate import Validator, compile_validator
from ._values import DeniedBy, Effect, ErrorInfo, Failure, Outcome, Success, ToolCall

__all__ = [
    "ANY",
    "EXCLUSIVE",
    "INDEPENDENT",
    "PARALLEL",
    "UNSET",
    "Accept",
    "Allow",
    "ApprovalOutcome",
    "ApprovalRequest",
    "Approver",
    "Arguments",
    "AroundHook",
    "Ask",
    "Block",
    "CallState",
    "CallStatus",
    "CallToken",
    "CallView",
    "Claims",
    "ContentBlock",
    "Deadline",
    "DeniedBy",
    "Deny",
    "DispatchView",
    "Effect",
    "ErrorInfo",
    "Explanation",
    "Failure",
    "FrozenDict",
    "FrozenList",
    "Guard",
    "HookRegistration",
    "HookSpan",
    "ImageBlock",
    "JsonObject",
    "JsonValue",
    "Keys",
    "OtherBlock",
    "Outcome",
    "Output",
    "PendingCall",
    "PostDecision",
    "PostHook",
    "PreDecision",
    "PreHook",
    "Registration",
    "Registry",
    "ResultObserver",
    "RunContext",
    "Scope",
    "Success",
    "TextBlock",
    "Timings",
    "ToolCall",
    "ToolDefinition",
    "Validator",
    "Wait",
    "as_content",
    "block_from_json",
    "block_to_json",
    "canonical_text",
    "check_object_schema",
    "check_schema",
    "check_valid",
    "classify",
    "compile_raw_validator",
    "compile_validator",
    "define_raw_tool",
    "define_tool",
    "freeze",
    "is_json",
    "parameters_to_json_schema",
    "parse_argument_text",
    "render_as_text",
    "snapshot",
    "soft_present",
    "thaw",
    "tool",
    "unwrap_double_encoded",
    "value_to_json_schema",
]
