import { Buffer } from 'node:buffer'

import type { Attack } from '../attack.ts'
import type { Caller } from '../caller.ts'
import { failureOf, outcomeOf } from '../caller.ts'
import type { Scene } from '../scene.ts'
import { during } from '../tally.ts'

const CONNECTIONS = 40

/** A control character: six bytes in JSON, and seven in the text of a tool's result. */
const CONTROL = '\u0001'

/** The most bytes of a result of several messages: 256 KiB of text with its escapes, and the structured content. */
const MAX_RESULT_BYTES = 1_000_000

/** Reads messages over and over on many connections, by the calls in turn, and checks the sizes of the answers. */
async function readAll(
  scene: Scene,
  calls: readonly (() => ReturnType<Caller['ask']>)[],
  maxBytes: number,
): Promise<void> {
  let largest = 0
  await during(scene.scaled(10_000, 3_000), scene.scaled(CONNECTIONS, 6), async (_index, worker) => {
    try {
      const answer = await calls[worker % calls.length]?.()
      if (answer === undefined) return
      scene.tally.count(outcomeOf(answer))
      largest = Math.max(largest, answer.text.length)
      // A refused caller would otherwise only measure refusals.
      if (answer.text.length < 10_000) await new Promise((resolve) => setTimeout(resolve, 100))
    } catch (error) {
      scene.tally.count(failureOf(error))
    }
  })
  scene.tally.expect(largest <= maxBytes, `an answer had ${largest} bytes, and ${maxBytes} are allowed`)
  scene.tally.expect(scene.tally.countOf('200') > 0, 'no read succeeded')
}

/** Many messages whose JSON is six times as large. */
export const largeAnswers: Attack = {
  name: 'large-answers',
  about: '40 connections that peek at 60 messages of 100 KB of control characters, by /mcp and /ce',
  async prepare(scene) {
    const caller = scene.attacker()
    const channel = 'attack.control'
    for (let n = 0; n < 60; n++) await caller.tool('queue_send', { channel, body: CONTROL.repeat(100_000) })
    const peek = '/ce/queue/receive?channel=attack.control&is_peek=true&max_messages=1000'
    return () =>
      readAll(
        scene,
        [() => caller.tool('queue_peek', { channel, max_messages: 100 }), () => caller.ask('POST', peek)],
        2 * MAX_RESULT_BYTES,
      )
  },
}

/** One message whose JSON is 60 MB. */
export const hugeAnswer: Attack = {
  name: 'huge-answer',
  about:
    '40 connections that peek at a message of 10 MB of control characters, by /mcp, /ce and the management listener',
  async prepare(scene) {
    const caller = scene.attacker()
    const body = Buffer.alloc(10_000_000, CONTROL)
    const headers = {
      'content-type': 'text/plain',
      'ce-specversion': '1.0',
      'ce-id': 'huge',
      'ce-source': '/attack',
      'ce-type': 'attack',
      'ce-subject': 'attack.huge',
    }
    const sent = await caller.ask('POST', '/ce/queue/send?channel=attack.huge', { headers, body })
    scene.tally.expect(sent.status === 202, `the message was not accepted: ${sent.text.slice(0, 200)}`)
    const input = { channel: 'attack.huge', max_messages: 10 }
    const action = JSON.stringify(input)
    const json = { 'content-type': 'application/json' }
    const url = `${scene.api}/api/actions/peek_queue_messages`
    return () =>
      readAll(
        scene,
        [
          () => caller.tool('queue_peek', input),
          () => caller.ask('POST', '/ce/queue/receive?channel=attack.huge&is_peek=true'),
          () => scene.operator.ask('POST', url, { headers: json, body: action }),
        ],
        75_000_000,
      )
  },
}
