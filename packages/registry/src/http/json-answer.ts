import type { OutgoingHttpHeaders } from 'node:http'

/** An answer that a route has printed itself, with headers of its own. */
export class JsonAnswer {
  readonly text: string
  readonly headers: OutgoingHttpHeaders

  constructor(text: string, headers: OutgoingHttpHeaders) {
    this.text = text
    this.headers = headers
  }
}
