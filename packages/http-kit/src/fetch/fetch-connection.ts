import { EventEmitter } from 'node:events'

import type { HttpConnection } from '../http-message.ts'

/** The connection of one fetch request: the host does not show the real one. */
export class FetchConnection extends EventEmitter<{ close: [hadError: boolean] }> implements HttpConnection {
  readonly single = true
  readonly encrypted: boolean
  readonly localAddress: string
  readonly localPort: number
  readonly remoteAddress: string | undefined
  /** `true` after the client disconnected. */
  lost = false

  /** @param remoteAddress The client's address; `undefined` if the host does not know it */
  constructor({ protocol, hostname, port }: URL, remoteAddress: string | undefined) {
    super()
    this.encrypted = protocol === 'https:'
    this.localAddress = hostname
    this.localPort = port === '' ? (this.encrypted ? 443 : 80) : Number(port)
    this.remoteAddress = remoteAddress
  }

  /** Reports that the client disconnected. */
  lose(): void {
    if (this.lost) return
    this.lost = true
    this.emit('close', true)
  }
}
