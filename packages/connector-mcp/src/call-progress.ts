import type { McpExchange } from './mcp-exchange.ts'

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
