import { useMemo } from 'preact/hooks'

import { last, perSecond, useHistory } from '../../api/use-history.ts'

/** Messages in a second, in the last step of the history. */
export interface ChannelRates {
  readonly in: number
  readonly out: number
}

/** By type and name, as in `queues orders`. */
export type Rates = ReadonlyMap<string, ChannelRates>

/** The most channels whose history a node keeps: the most active ones. */
const FOLLOWED = 50

/** Returns the present rates of the channels that the node follows. */
export function useRates(): Rates {
  const { data } = useHistory('minute', { channels: FOLLOWED, agents: 0 })
  return useMemo(
    () =>
      new Map(
        data?.channels.map(({ type, name, messages_in: into, messages_out: out }) => [
          `${type} ${name}`,
          { in: last(perSecond(into, data)), out: last(perSecond(out, data)) },
        ]),
      ),
    [data],
  )
}
