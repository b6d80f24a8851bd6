import type { BrokerHandle } from '@signalbox/broker-core'

/**
 * Returns the sequence of the last message that waits in a queue; 0 if none waits. Engines peek from a
 * sequence on, so this searches: three peeks for a queue without gaps, and a few dozen for one with gaps.
 * @param waiting The number of waiting messages, as far as it is known
 */
export async function lastSequence(
  { queues }: Pick<BrokerHandle, 'queues'>,
  channel: string,
  waiting: number,
): Promise<number> {
  const next = async (fromSequence: number): Promise<number | undefined> =>
    (await queues.peek(channel, { maxMessages: 1, maxBytes: 1, fromSequence }))[0]?.sequence
  const first = await next(1)
  if (first === undefined) return 0
  let last = first
  let end = first + Math.max(1, waiting)
  const near = await next(end - 1)
  if (near !== undefined) {
    last = near
    end = near + 1
  }
  for (let step = 1; ; step *= 2) {
    const found = await next(end)
    if (found === undefined) break
    last = found
    end = found + step
  }
  // No message has the sequence `end` or a later one.
  while (last + 1 < end) {
    const middle = Math.ceil((last + end) / 2)
    const found = await next(middle)
    if (found === undefined) end = middle
    else last = found
  }
  return last
}
