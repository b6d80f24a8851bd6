import type { Socket } from 'node:net'

import { serveSockets } from '@signalbox/testkit/loopback'
import type { MeasuredProcess } from '@signalbox/testkit/measured-process'

import { startWebhookSender } from '../processes.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import { compare, medians, ratios } from '../row.ts'
import type { Subject } from '../subject.ts'
import { WORKING_TREE } from '../subject.ts'
import type { Work, WorkFigures } from '../workers/work.ts'
import { figures } from '../workers/work.ts'

const SETUP = { members: 64, bytes: 1_024 }
const EVENTS = 20_000
const FEW_EVENTS = 2_000

/**
 * The parts of a round. The alternatives run interleaved part by part: a busy machine changes its speed within a round, and
 * positions are stored at a fixed rate, so the cost of a delivery depends on the speed.
 */
const PARTS = 5

/** The deliveries after which V8 has compiled the hot code. */
const WARM_DELIVERIES = 20_000

async function startSender(
  context: BenchContext,
  subject: Subject,
  url: string,
  open: 'openBare' | 'openWebhooks',
): Promise<MeasuredProcess> {
  const worker = startWebhookSender(context, subject, url, open)
  await worker.call(open, { ...SETUP, events: context.quick ? FEW_EVENTS : EVENTS })
  return worker
}

/** A part of a round, by name as `interleave` wants it. */
type Part = Readonly<Record<keyof Work, number>>

async function sendPart(worker: MeasuredProcess, roundMs: number): Promise<Part> {
  return { ...(await worker.call<Work>('send', { durationMs: roundMs / PARTS })) }
}

/** Returns the measurements of whole rounds. */
function wholeRounds(parts: readonly Part[]): WorkFigures[] {
  const sum = (of: readonly Part[], name: keyof Work): number => of.reduce((total, part) => total + part[name], 0)
  return Array.from({ length: parts.length / PARTS }, (_, round) => {
    const own = parts.slice(round * PARTS, (round + 1) * PARTS)
    const [operations, wallMs, cpuMicros] = [sum(own, 'operations'), sum(own, 'wallMs'), sum(own, 'cpuMicros')]
    return figures({ operations, wallMs, cpuMicros })
  })
}

async function warm(context: BenchContext, worker: MeasuredProcess): Promise<void> {
  const enough = context.quick ? WARM_DELIVERIES / 10 : WARM_DELIVERIES
  for (let done = 0; done < enough;) {
    done += (await worker.call<Work>('send', { durationMs: context.warmUpMs })).operations
  }
}

/** The cost of a durable, signed delivery over that of a signed request. */
export const webhooks: Row = {
  id: 'webhooks',
  title: 'webhooks: signed deliveries of 1 KiB from an events store, 64 in flight, vs a loop of signed undici POSTs',
  run: async (context): Promise<readonly Measure[]> => {
    await using endpoint = await serveSockets(serve)
    const url = `${endpoint.url}/hook`
    const sender = async (subject: Subject, stack: AsyncDisposableStack, open: 'openBare' | 'openWebhooks') => {
      const worker = stack.use(await startSender(context, subject, url, open))
      await warm(context, worker)
      return () => sendPart(worker, context.roundMs)
    }
    return await compare<Part>(
      { ...context, rounds: context.rounds * PARTS },
      {
        yardsticks: async (stack) => [await sender(WORKING_TREE, stack, 'openBare')],
        open: async (subject, stack) => [await sender(subject, stack, 'openWebhooks')],
        judge: ([own = []], [bare = []]) => {
          const [rounds, yardstick] = [wholeRounds(own), wholeRounds(bare)]
          return [
            {
              name: 'webhook delivery, CPU vs a signed POST',
              goal: { must: 1.5, aim: 1.25, better: 'less', unit: '×' },
              samples: ratios(rounds, yardstick, (round) => round['CPU µs/message']),
              details: { ...medians('webhooks', rounds), ...medians('bare', yardstick) },
            },
          ]
        },
      },
    )
  },
}

/** The answers, as Node's HTTP server writes them. */
const KEPT = 'Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n'
const CONSENT = Buffer.from(`HTTP/1.1 200 OK\r\nWebHook-Allowed-Origin: *\r\nContent-Length: 0\r\n${KEPT}`)
const ACCEPTED = Buffer.from(`HTTP/1.1 204 No Content\r\nDate: Mon, 23 Nov 2026 00:00:00 GMT\r\n${KEPT}`)

const HEAD_END = Buffer.from('\r\n\r\n')
const LENGTH = /\r\ncontent-length: (\d+)/i

/**
 * Answers the requests of one connection, one after the other, on the load's core: agrees to webhooks and accepts each
 * delivery. Node's HTTP server needs as much CPU for a request as the bare loop for sending it, so it would limit that
 * loop.
 */
function serve(socket: Socket): void {
  /** The bytes of a head without its end. */
  let head = Buffer.alloc(0)
  /** The bytes of the body that have not arrived, and the answer after them. */
  let left = 0
  let answer = ACCEPTED
  socket.setNoDelay(true)
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk) => {
    let rest = chunk
    while (rest.byteLength > 0) {
      if (left === 0) {
        head = head.byteLength === 0 ? rest : Buffer.concat([head, rest])
        const end = head.indexOf(HEAD_END)
        if (end < 0) return
        const text = head.toString('latin1', 0, end)
        answer = text.startsWith('OPTIONS') ? CONSENT : ACCEPTED
        left = Number(LENGTH.exec(text)?.[1] ?? 0)
        rest = head.subarray(end + HEAD_END.byteLength)
        head = Buffer.alloc(0)
      }
      const part = Math.min(left, rest.byteLength)
      left -= part
      rest = rest.subarray(part)
      if (left === 0) socket.write(answer)
    }
  })
}
