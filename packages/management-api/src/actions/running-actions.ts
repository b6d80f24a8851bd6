import type { ServerResponse } from 'node:http'

/** Actions under way: each ends when its client disconnects, and all end when the server shuts down. */
export class RunningActions {
  readonly #running = new Map<ServerResponse, AbortController>()
  #ended = false

  /** @returns a signal that is aborted when the client has disconnected or the server shuts down */
  begin(response: ServerResponse): AbortSignal {
    const controller = new AbortController()
    this.#running.set(response, controller)
    response.once('close', () => controller.abort())
    // The client can have disconnected while the actions were loaded.
    if (this.#ended || response.destroyed) controller.abort()
    return controller.signal
  }

  finish(response: ServerResponse): void {
    this.#running.delete(response)
  }

  endAll(): void {
    this.#ended = true
    for (const controller of this.#running.values()) controller.abort()
  }
}
