/** A request in flight. */
export interface OpenRequest {
  abort(reason: Error): void
}

/**
 * The requests in flight of one subscription, which are aborted together. A listener of an `AbortSignal` for each
 * request costs a tenth of the request.
 */
export class OpenRequests {
  readonly #requests = new Set<OpenRequest>()
  #reason: Error | undefined

  /** `true` if no request may start any more. */
  get aborted(): boolean {
    return this.#reason !== undefined
  }

  throwIfAborted(): void {
    if (this.#reason !== undefined) throw this.#reason
  }

  /** Adds a request. Aborts it if the others were aborted before. */
  add(request: OpenRequest): void {
    if (this.#reason === undefined) this.#requests.add(request)
    else request.abort(this.#reason)
  }

  delete(request: OpenRequest): void {
    this.#requests.delete(request)
  }

  /** Aborts all requests. Idempotent. */
  abort(reason: Error): void {
    this.#reason ??= reason
    for (const request of this.#requests) request.abort(this.#reason)
  }
}
