import { randomUUID } from 'node:crypto'

import type { Server } from './server.ts'

interface Leased {
  readonly receipt: string
}

/** An agent without a url, whose requests wait in its inbox. */
export class Inbox {
  readonly #server: Server
  readonly #agentId: string

  private constructor(server: Server, agentId: string) {
    this.#server = server
    this.#agentId = agentId
  }

  static async register(server: Server, card: { readonly agent_id: string; readonly name: string }): Promise<Inbox> {
    const inbox = new Inbox(server, card.agent_id)
    await inbox.#post('/agents/register', { ...card, a2a: { pull: true } })
    return inbox
  }

  /** Sends a text to the agent, and returns the id of its task. */
  async send(text: string): Promise<string> {
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] }
    const params = { message, configuration: { returnImmediately: true } }
    const request = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params }
    const { result } = (await this.#post(`/a2a/${this.#agentId}`, request)) as {
      readonly result: { readonly task: { readonly id: string } }
    }
    return result.task.id
  }

  /** Leases the oldest request. */
  async lease(): Promise<Leased> {
    const { items } = (await this.#post(`/agents/${this.#agentId}/inbox/lease`, {})) as {
      readonly items: readonly Leased[]
    }
    const [item] = items
    if (item === undefined) throw new Error('the inbox is empty')
    return item
  }

  /** Writes the first events of a leased request. */
  async write(receipt: string, events: readonly object[]): Promise<void> {
    await this.#post(`/agents/${this.#agentId}/inbox/events`, { receipt, offset: 0, events })
  }

  async #post(path: string, body: object): Promise<unknown> {
    const response = await fetch(`${this.#server.http}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0', ...this.#server.headersOf('agents') },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response.json()
  }
}
