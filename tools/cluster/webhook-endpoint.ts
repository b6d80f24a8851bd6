import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The time to answer a delivery, in ms: long enough that a second one in flight would be seen. */
const ANSWER_MS = 10

/** The deliveries of one ordered subscription, whose events have the ids 0, 1, 2 … */
export class OrderedDeliveries {
  readonly #accepted = new Set<number>()
  #inFlight = 0
  /** The most deliveries in flight at a time. */
  mostInFlight = 0
  /** Accepted events that were accepted before. */
  repeats = 0
  /** Events that arrived before an earlier one was accepted. */
  readonly early: number[] = []
  /** The time of the last accepted delivery, by `performance.now()`. */
  lastAt = 0

  begin(): void {
    this.mostInFlight = Math.max(this.mostInFlight, ++this.#inFlight)
  }

  end(): void {
    this.#inFlight--
  }

  accept(n: number): void {
    this.lastAt = performance.now()
    if (this.#accepted.has(n)) this.repeats++
    else if (n > 0 && !this.#accepted.has(n - 1)) this.early.push(n)
    this.#accepted.add(n)
  }

  /** Returns the events below `count` that were not accepted. */
  missing(count: number): readonly number[] {
    return Array.from({ length: count }, (_, n) => n).filter((n) => !this.#accepted.has(n))
  }
}

/** An endpoint on loopback with one path, `/0`, `/1` …, for each subscription. It agrees to webhooks. */
export class WebhookEndpoint implements AsyncDisposable {
  readonly subscriptions: readonly OrderedDeliveries[]
  readonly #server = createServer((request, response) => this.#serve(request, response))

  private constructor(count: number) {
    this.subscriptions = Array.from({ length: count }, () => new OrderedDeliveries())
  }

  static async start(count: number): Promise<WebhookEndpoint> {
    const endpoint = new WebhookEndpoint(count)
    endpoint.#server.listen(0, '127.0.0.1')
    await once(endpoint.#server, 'listening')
    return endpoint
  }

  urlOf(subscription: number): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${subscription}`
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const deliveries = this.subscriptions[Number(request.url?.slice(1))]
    if (deliveries === undefined || request.method !== 'POST') {
      response.writeHead(200, { 'WebHook-Allowed-Origin': '*' }).end()
      return
    }
    deliveries.begin()
    // Also emitted if the node dies.
    response.once('close', () => deliveries.end())
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (body += chunk))
    request.once('end', () => {
      setTimeout(() => {
        if (response.destroyed) return
        const { id } = JSON.parse(body) as { readonly id: string }
        deliveries.accept(Number(id))
        response.writeHead(204).end()
      }, ANSWER_MS)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
