import type { ComponentChildren } from 'preact'

import type { GetData } from '../../api/client.ts'
import type { HistoryData } from '../../api/use-history.ts'
import { last, perSecond, sumOf, total } from '../../api/use-history.ts'
import { bytes, count, rate } from '../../components/values.tsx'
import { href } from '../../router/location.ts'

export type Snapshot = GetData<'/api/snapshot'>

interface FiguresProps {
  readonly snapshot: Snapshot
  readonly history: HistoryData | undefined
}

/** The numbers that are read first. */
export function Figures({ snapshot, history }: FiguresProps) {
  const { queues, store, agents, streams, totals } = snapshot
  const now = (lists: readonly (readonly (number | null)[])[]): string =>
    history === undefined ? '–' : rate(last(perSecond(sumOf(lists), history)))
  return (
    <dl class="figures">
      <Figure title="Messages in" note={`${count(totals.messages_in)} since start`}>
        {now(history?.messages.map(({ messages_in }) => messages_in) ?? [])}
      </Figure>
      <Figure title="Messages out" note={`${count(totals.messages_out)} since start`}>
        {now(history?.messages.map(({ messages_out }) => messages_out) ?? [])}
      </Figure>
      <Figure
        title="Waiting"
        to={href(['channels'], { type: 'queues', sort: 'depth' })}
        note={`${count(queues.delayed)} delayed`}
      >
        {count(queues.waiting)}
      </Figure>
      <Figure title="In flight" note="leased messages">
        {count(queues.in_flight)}
      </Figure>
      <Figure title="Dead-lettered" to={href(['dead-letters'])} note="in the time span">
        {history === undefined ? '–' : count(total(history.queues.dead_lettered))}
      </Figure>
      <Figure title="Agents" to={href(['agents'])} note={`${count(agents.in_flight)} calls under way`}>
        {count(agents.registered)}
      </Figure>
      <Figure title="Streams" to={href(['tasks'])} note="server-sent events">
        {count(Object.values(streams).reduce((sum, open) => sum + open, 0))}
      </Figure>
      <Figure title="Store" note={history === undefined ? 'on disk' : `${bytes(last(history.memory_bytes))} of memory`}>
        {bytes(store.bytes)}
      </Figure>
    </dl>
  )
}

interface FigureProps {
  readonly title: string
  /** The screen with the details. @default none */
  readonly to?: string
  readonly note: string
  readonly children: ComponentChildren
}

function Figure({ title, to, note, children }: FigureProps) {
  return (
    <div>
      <dt>{to === undefined ? title : <a href={to}>{title}</a>}</dt>
      <dd>{children}</dd>
      <dd class="figure-note">{note}</dd>
    </div>
  )
}
