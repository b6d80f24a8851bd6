import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { internalError, isJsonObject } from '@signalbox/http-kit/internal'

import { CallEnded } from './calls.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { ToolOutcome } from './tools/tool.ts'
import { resultMembers } from './tools/tool.ts'

/** The progress notifications of one call, as events of its answer. */
export class CallProgress {
  readonly #exchange: McpExchange
  readonly #token: string
  readonly #keepAliveMs: number
  readonly #startedAt: number
  #last = -1

  /**
   * @param token The source text of `_meta.progressToken`
   * @param startedAt The start of the call, on the clock of `performance.now()`
   */
  constructor(exchange: McpExchange, token: string, keepAliveMs: number, startedAt: number) {
    this.#exchange = exchange
    this.#token = token
    this.#keepAliveMs = keepAliveMs
    this.#startedAt = startedAt
  }

  /** Writes a notification. Its progress is the seconds since the start. */
  write(message: string): void {
    // MCP requires a value that grows with each notification, even if the clock does not.
    const seconds = Math.round(performance.now() - this.#startedAt) / 1000
    this.#last = seconds > this.#last ? seconds : this.#last + 0.001
    this.#exchange.openStream(this.#keepAliveMs).write({
      event: 'message',
      data:
        `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${this.#token},` +
        `"progress":${Number(this.#last.toFixed(3))},"message":${JSON.stringify(message)}}}`,
    })
  }
}

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
