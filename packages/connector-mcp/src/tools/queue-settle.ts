import type { SettleResult } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'
import { shownValue } from '@signalbox/http-kit'
import type { ArgumentProblem } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { CHANGES, REMOVES } from './annotations.ts'
import { defineTool } from './define-tool.ts'
import { confirmation } from './results.ts'
import type { Tool, ToolNeed, ToolOutcome } from './tool.ts'

/** The longest lease, in seconds: twelve hours. */
export const MAX_LEASE_SECONDS = 43_200

/** The most receipts of one call, as many as one receive returns. */
const MAX_RECEIPTS = 100

const STRICT = { additionalProperties: false } as const

const receipts = Type.Array(Type.String(), { description: 'Receipts from queue_receive, 1 to 100.' })

const settleOutput = Type.Object({ settled: Type.Integer(), lost: Type.Array(Type.String()) })

const needs: ToolNeed = { action: 'receive', patterns: ['queues'] }

const queueAck = defineTool({
  name: 'queue_ack',
  title: 'Acknowledge messages',
  description:
    'Removes messages that queue_receive leased with lease_seconds. Call it when the work is done: after the lease another consumer receives the message.',
  input: Type.Object({ receipts }, STRICT),
  output: settleOutput,
  annotations: { ...REMOVES, idempotentHint: true },
  needs,
  rule: tooMany,
  run: async ({ receipts }, { broker }) => settled('acknowledged and removed', await broker.queues.ack(receipts)),
})

const queueNack = defineTool({
  name: 'queue_nack',
  title: 'Reject messages',
  description:
    'Returns leased messages to their queue, for work that failed. After max_receive_count receives, a message moves to its dead-letter queue instead.',
  input: Type.Object(
    {
      receipts,
      delay_seconds: Type.Optional(
        Type.Integer({
          description: 'Seconds until the messages can be received again.',
          minimum: 0,
          maximum: MAX_LEASE_SECONDS,
          default: 0,
        }),
      ),
    },
    STRICT,
  ),
  output: settleOutput,
  annotations: CHANGES,
  needs,
  rule: tooMany,
  async run({ receipts, delay_seconds = 0 }, { broker: { queues } }) {
    if (delay_seconds === 0) return settled('returned to the queue', await queues.nack(receipts))
    // The end of a lease returns the message and counts as a receive, as a nack does.
    const result = await queues.extend(receipts, delay_seconds * 1000)
    return settled(`rejected; they can be received again in ${delay_seconds} s`, result)
  },
})

const queueExtend = defineTool({
  name: 'queue_extend',
  title: 'Extend leases',
  description:
    'Sets the end of leases to lease_seconds from now, for work that takes longer. Call it before the leases end.',
  input: Type.Object(
    {
      receipts,
      lease_seconds: Type.Integer({
        description: 'The new lease, in seconds.',
        minimum: 1,
        maximum: MAX_LEASE_SECONDS,
      }),
    },
    STRICT,
  ),
  output: settleOutput,
  annotations: CHANGES,
  needs,
  rule: tooMany,
  run: async ({ receipts, lease_seconds }, { broker }) =>
    settled(`leased for ${lease_seconds} s from now`, await broker.queues.extend(receipts, lease_seconds * 1000)),
})

/** The tools that settle messages which `queue_receive` leased. */
export const SETTLE_TOOLS: readonly Tool[] = [queueAck, queueNack, queueExtend]

function tooMany({ receipts }: { readonly receipts: readonly string[] }): ArgumentProblem | undefined {
  if (receipts.length > 0 && receipts.length <= MAX_RECEIPTS) return undefined
  return { argument: 'receipts', given: shownValue(receipts), allowed: `an array of 1 to ${MAX_RECEIPTS} receipts` }
}

/** Returns the outcome of a settlement. A lost receipt is no error, as on the other surfaces. */
function settled(done: string, { settled, lost }: SettleResult): ToolOutcome {
  const text = `${settled} of ${settled + lost.length} messages ${done}.`
  if (lost.length === 0) return confirmation(text, { settled, lost })
  const receipts = lost.map((receipt) => shownText(receipt, 128)).join(', ')
  return confirmation(
    `${text} Lost receipts: ${receipts}. Each is unknown or was settled in another way, or its lease has ended, or another client has it. ` +
      'Do not repeat the call for them: their messages may be with other consumers.',
    { settled, lost },
  )
}
