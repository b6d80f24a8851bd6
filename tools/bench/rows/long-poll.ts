import { quantile } from '@signalbox/testkit/figures'
import { assertSuccess, KeepAliveConnection, postBytes } from '@signalbox/testkit/http-connection'
import { toolCall, toolResult } from '@signalbox/testkit/mcp-client'

import { startServer } from '../processes.ts'
import type { BenchContext, Row } from '../row.ts'
import { atMost, compare, medians } from '../row.ts'
import type { Subject } from '../subject.ts'

const CHANNEL = 'bench.long-poll'
const PER_SECOND = 1000
/**
 * Messages after which V8 has compiled most of the hot code. Its helper threads share the measured core: after 3,000
 * messages they took about 10 % of it for another ten seconds and more.
 */
const WARM_MESSAGES = 20_000
const WARM_PER_SECOND = 4 * PER_SECOND
const POLLS = 48
const SENDERS = 16

/** The time at which a message's send was written to the socket, by its body. Sender and receiver share one clock. */
type Sent = Map<string, number>

/**
 * Repeats a long poll until the signal closes its connection, and passes on the text of each answer. (Racing each answer
 * against one long promise would keep them all alive.)
 */
export async function poll(
  url: string,
  channel: string,
  end: AbortSignal,
  received: (text: string) => void,
): Promise<void> {
  const connection = await KeepAliveConnection.open(url)
  end.addEventListener('abort', () => connection.close())
  const request = postBytes(url, toolCall('queue_receive', { channel, max_messages: 1, wait_timeout_seconds: 60 }))
  for (;;) {
    const answer = await connection.request(request).catch((error: unknown) => {
      if (!end.aborted) throw error
    })
    if (answer === undefined) return
    const { isError, text } = toolResult(answer.body.toString())
    if (isError) throw new Error(text)
    received(text)
  }
}

interface Pace {
  readonly perSecond: number
  readonly total: number
}

/** Sends at a fixed pace, independently of the answers, as long as a connection is idle: an open loop. */
export async function sendAtPace(
  connections: readonly KeepAliveConnection[],
  { perSecond, total }: Pace,
  next: () => Buffer,
): Promise<void> {
  const idle = [...connections]
  const answers: Promise<void>[] = []
  const begin = performance.now()
  for (let count = 0; count < total;) {
    const due = Math.min(total, Math.floor(((performance.now() - begin) / 1000) * perSecond))
    for (; count < due; count++) {
      const connection = idle.pop()
      if (connection === undefined) break
      answers.push(
        connection.request(next()).then((answer) => {
          assertSuccess(answer)
          idle.push(connection)
        }),
      )
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await Promise.all(answers)
}

async function subjectRun(context: BenchContext, subject: Subject, stack: AsyncDisposableStack) {
  const server = stack.use(await startServer(context, subject))
  const url = `${server.http}/mcp`
  const run = async (pace: Pace) => {
    const sent: Sent = new Map()
    const latencies: number[] = []
    const end = new AbortController()
    const received = (text: string): void => {
      const now = performance.now()
      for (const { body: id } of JSON.parse(text) as { body: string }[]) {
        const at = sent.get(id)
        if (at === undefined) throw new Error(`a message arrived that was not sent, or arrived twice: ${id}`)
        sent.delete(id)
        latencies.push(now - at)
      }
    }
    const polls = Promise.all(Array.from({ length: POLLS }, () => poll(url, CHANNEL, end.signal, received)))
    const senders = await Promise.all(Array.from({ length: SENDERS }, () => KeepAliveConnection.open(url)))
    const begin = performance.now()
    let count = 0
    await sendAtPace(senders, pace, () => {
      const id = `${begin}-${count++}`
      sent.set(id, performance.now())
      return postBytes(url, toolCall('queue_send', { channel: CHANNEL, body: id }))
    })
    const seconds = (performance.now() - begin) / 1000
    for (let i = 0; sent.size > 0 && i < 1000; i++) await new Promise((resolve) => setTimeout(resolve, 5))
    end.abort()
    await polls
    for (const connection of senders) connection.close()
    if (sent.size > 0) throw new Error(`${sent.size} messages did not arrive`)
    return {
      'p50 ms': quantile(latencies, 0.5),
      'p99 ms': quantile(latencies, 0.99),
      'max ms': quantile(latencies, 1),
      'messages/s': latencies.length / seconds,
    }
  }
  await run({ perSecond: WARM_PER_SECOND, total: context.quick ? WARM_MESSAGES / 4 : WARM_MESSAGES })
  return () => run({ perSecond: PER_SECOND, total: Math.round((context.roundMs / 1000) * PER_SECOND) })
}

/** The time of a message from its sender's socket to a waiting receiver's, through the disk. */
export const longPoll: Row = {
  id: 'long-poll',
  title: 'send → a waiting long poll’s response, p99 at 1,000/s',
  run: (context) =>
    compare(context, {
      open: async (subject, stack) => [await subjectRun(context, subject, stack)],
      judge: ([rounds = []]) => [
        {
          name: 'send to long poll, p99',
          goal: atMost(8, 4, 'ms'),
          samples: rounds.map((round) => round['p99 ms']),
          details: medians('', rounds),
        },
      ],
    }),
}
