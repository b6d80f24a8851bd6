import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

import { onTestFinished } from 'vitest'

/** The network between one node and its servers, for as long as the test runs. */
export interface Cuttable {
  readonly url: string
  /** Breaks every connection, with what it holds, and takes no other until {@link restore}. */
  cut(): void
  restore(): void
  /** Breaks the second connection of the node, which is for large messages, each time that the node opens it. */
  cutLarge(): void
  /** Holds what the servers send, from now on or from the moment when the node sends a text. Resolves at that moment. */
  holdAnswers(after?: string): Promise<void>
  /** How often a text is in the answers that it holds. */
  heldAnswers(text: string): number
  /** Holds what the node sends, from a text on. Resolves when it holds that. */
  holdRequests(from: string): Promise<void>
  /** Passes on what it holds, and holds nothing more. */
  release(): void
}

/** One direction of the network. */
class Way {
  #held: { readonly chunk: Buffer; readonly send: () => void }[] | undefined

  /** How often a text is in what it holds. */
  count(text: string): number {
    return (
      Buffer.concat((this.#held ?? []).map(({ chunk }) => chunk))
        .toString('latin1')
        .split(text).length - 1
    )
  }

  pass(from: Socket, to: Socket, seen: (chunk: Buffer) => void = () => {}): void {
    from.on('data', (chunk: Buffer) => {
      seen(chunk)
      const send = (): void => void (to.writable && to.write(chunk))
      if (this.#held) this.#held.push({ chunk, send })
      else send()
    })
  }

  hold(): void {
    this.#held ??= []
  }

  drop(): void {
    this.#held = undefined
  }

  release(): void {
    for (const { send } of this.#held ?? []) send()
    this.#held = undefined
  }
}

export async function cuttable(serverUrl: string): Promise<Cuttable> {
  const target = new URL(serverUrl)
  const sockets = new Set<Socket>()
  const [requests, answers] = [new Way(), new Way()]
  const large = new Set<Socket>()
  let isCut = false
  let largeAreCut = false
  let seen: ((chunk: Buffer) => void) | undefined
  const holdWhenSent = (text: string, way: Way): Promise<void> =>
    new Promise((resolve) => {
      seen = (chunk) => {
        if (!chunk.includes(text)) return
        seen = undefined
        way.hold()
        resolve()
      }
    })
  const server = createServer((near) => {
    if (isCut) {
      near.destroy()
      return
    }
    const far = connect(Number(target.port), target.hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.once('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
    requests.pass(near, far, (chunk) => {
      seen?.(chunk)
      if (!chunk.includes('-large"')) return
      large.add(near)
      if (largeAreCut) near.destroy()
    })
    answers.pass(far, near)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const breakAll = (): void => {
    for (const way of [requests, answers]) way.drop()
    for (const socket of sockets) socket.destroy()
  }
  onTestFinished(() => {
    server.close()
    breakAll()
  })
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      isCut = true
      breakAll()
    },
    restore() {
      isCut = false
    },
    cutLarge() {
      largeAreCut = true
      for (const socket of large) socket.destroy()
    },
    holdAnswers(after) {
      if (after !== undefined) return holdWhenSent(after, answers)
      answers.hold()
      return Promise.resolve()
    },
    heldAnswers: (text) => answers.count(text),
    holdRequests: (from) => holdWhenSent(from, requests),
    release() {
      for (const way of [requests, answers]) way.release()
    },
  }
}
