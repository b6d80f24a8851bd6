import type { OutgoingHttpHeaders } from 'node:http'

/** An answer that a route has already serialized, with additional headers. */
export class JsonAnswer {
  readonly text: string
  readonly headers: OutgoingHttpHeaders

  constructor(text: string, headers: OutgoingHttpHeaders) {
    this.text = text
    this.headers = headers
  }
}
