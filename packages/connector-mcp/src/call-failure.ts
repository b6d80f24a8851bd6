import { internalError, isJsonObject, JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import { CallEnded } from './errors.ts'
import type { McpExchange } from './mcp-exchange.ts'
import { resultMembers } from './tools/result-members.ts'
import type { ToolOutcome } from './tools/tool.ts'

/**
 * Answers a call with the error that its tool threw: a JSON-RPC error, or a tool result where the revision wants one.
 * @param id The source text of the JSON-RPC id
 * @param failed Reports an error that no caller caused
 */
export function answerFailure(
  exchange: McpExchange,
  id: string,
  error: unknown,
  failed: (error: unknown) => void,
): void {
  if (error instanceof JsonRpcError) {
    if (exchange.revision.invalidArguments === 'result' && error.code === JSON_RPC_CODES.INVALID_PARAMS) {
      exchange.succeed(id, resultMembers(argumentsOutcome(error)), 'tool_error')
    } else exchange.fail(error, id)
  } else if (error instanceof CallEnded) {
    exchange.succeed(id, resultMembers({ text: error.message, isError: true }), 'tool_error')
  } else {
    failed(error)
    exchange.fail(internalError(error), id)
  }
}

/** Answers a call whose tool did not finish in time. */
export function answerTimeout(exchange: McpExchange, id: string, timeoutMs: number): void {
  const text = `TIMEOUT: The tool did not finish within ${timeoutMs / 1000} s. The tool may still complete its work: check that before you repeat the call.`
  exchange.succeed(id, resultMembers({ text, isError: true }), 'tool_error')
}

/** Returns rejected arguments as a tool result, so that a model sees the problems and can correct them. */
function argumentsOutcome({ message, data }: JsonRpcError): ToolOutcome {
  const outcome = { text: message, isError: true }
  return isJsonObject(data) ? { ...outcome, structuredContent: data } : outcome
}
