import { useState } from 'preact/hooks'

import { get } from '../../api/client.ts'
import type { GetData } from '../../api/client.ts'
import { useData } from '../../api/use-data.ts'
import { perSecond, useHistory } from '../../api/use-history.ts'
import type { HistoryData } from '../../api/use-history.ts'
import { HistoryPlots, RangeChoice, useRange } from '../../components/plot.tsx'
import type { HistoryPlot } from '../../components/plot.tsx'
import { Empty, ErrorOf, Page } from '../../components/page.tsx'
import { Ago, bytes, count, rate, TYPE_NAMES, UserText } from '../../components/values.tsx'
import type { ChannelType } from '../../components/values.tsx'
import { href } from '../../router/location.ts'
import type { Place } from '../../router/location.ts'
import { useMay } from '../../session/operator.ts'
import { ChannelSettings } from './channel-settings.tsx'
import { Messages } from './messages.tsx'
import { Send } from './send.tsx'
import { DeleteChannel, Limits, PurgeQueue } from './settings.tsx'
import { Subscribers } from './subscribers.tsx'

interface ChannelProps {
  readonly type: ChannelType
  readonly name: string
  readonly place: Place
}

const SEND: Readonly<Record<ChannelType, string>> = {
  queues: 'Send message',
  events: 'Publish event',
  events_store: 'Publish event',
  commands: 'Send command',
  queries: 'Send query',
}

/** Everything about one channel. */
export function Channel({ type, name, place }: ChannelProps) {
  const mayWrite = useMay('ReadWrite')
  const [open, setOpen] = useState<'send' | 'purge' | 'delete'>()
  const [changes, setChanges] = useState(0)
  const range = useRange()
  const close = (): void => setOpen(undefined)
  const changed = (): void => setChanges((value) => value + 1)
  const { data, error, refresh } = useData(
    `channel ${type} ${name}`,
    (signal) => readChannel(type, name, signal),
    5_000,
  )
  const history = useHistory(range, { type, channel: name, agents: 0 })
  const done = (): void => {
    refresh()
    changed()
  }
  return (
    <Page
      up={{ title: 'Channels', to: href(['channels']) }}
      title={<UserText>{name}</UserText>}
      note={TYPE_NAMES[type]}
      actions={
        mayWrite && (
          <>
            <button type="button" class="primary" onClick={() => setOpen('send')}>
              {SEND[type]}
            </button>
            {type === 'queues' && (
              <button type="button" onClick={() => setOpen('purge')}>
                Purge
              </button>
            )}
            <button type="button" onClick={() => setOpen('delete')}>
              Delete
            </button>
          </>
        )
      }
    >
      <ErrorOf error={error} />
      {data === null && <Empty>This channel does not exist. The first message creates it.</Empty>}
      {data && <ChannelFigures channel={data} />}
      <div class="filters">
        <RangeChoice />
        <a href={href(['live'], { channel: name, type })}>Watch live</a>
        <a href={href(['audit'], { channel: name })}>Audit log</a>
        {type === 'queues' && <a href={href(['dead-letters'], { channel: name })}>Dead letters</a>}
      </div>
      {history.data && (
        <HistoryPlots
          history={history.data}
          plotsOf={(shown) => plotsOf(shown, stores(type))}
          empty="The plots begin now: the node follows this channel from here on."
        />
      )}
      {stores(type) && data !== null && (
        <Messages type={type} channel={name} place={place} changes={changes} onChanged={refresh} />
      )}
      <ChannelSettings type={type} channel={name} />
      {data && (
        <div class="grid">
          <Subscribers type={type} channel={name} />
          <Limits type={type} />
        </div>
      )}
      {open === 'send' && <Send type={type} channel={name} onClose={close} onSent={done} />}
      {open === 'purge' && <PurgeQueue channel={name} onClose={close} onDone={done} />}
      {open === 'delete' && <DeleteChannel type={type} channel={name} onClose={close} />}
    </Page>
  )
}

function stores(type: ChannelType): type is 'queues' | 'events_store' {
  return type === 'queues' || type === 'events_store'
}

/** Returns the entry of one channel in the list; null if there is none. */
async function readChannel(type: ChannelType, name: string, signal: AbortSignal) {
  const { items } = await get('/api/channels', { type, name }, signal)
  return items[0] ?? null
}

/** @param stored Whether the channel holds messages */
function plotsOf(history: HistoryData, stored: boolean): readonly HistoryPlot[] {
  const [channel] = history.channels
  if (channel === undefined || history.steps === 0) return []
  const rates: HistoryPlot = {
    title: 'Messages',
    lines: [
      { label: 'in', values: perSecond(channel.messages_in, history) },
      { label: 'out', values: perSecond(channel.messages_out, history) },
    ],
    format: rate,
  }
  const depth: HistoryPlot = {
    title: 'Depth',
    lines: [
      { label: 'stored', values: channel.depth },
      { label: 'in flight', values: channel.in_flight },
    ],
    format: count,
    grid: 'whole',
  }
  return stored ? [rates, depth] : [rates]
}

type Listed = GetData<'/api/channels'>['items'][number]

/** The numbers of one channel. Those that its type does not have are left out. */
function ChannelFigures({ channel }: { readonly channel: Listed }) {
  const figures: readonly (readonly [string, number | null])[] = [
    [channel.type === 'events_store' ? 'Events' : 'Waiting', channel.depth],
    ['In flight', channel.in_flight],
    ['Delayed', channel.delayed],
    ['Dead-lettered', channel.dead_lettered],
    ['Messages in', channel.messages_in],
    ['Messages out', channel.messages_out],
    ['Errors', channel.errors],
    ['Subscribers', channel.subscribers],
  ]
  return (
    <dl class="figures">
      {figures.map(
        ([title, value]) =>
          value !== null && (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{count(value)}</dd>
            </div>
          ),
      )}
      {channel.bytes !== null && (
        <div>
          <dt>Size</dt>
          <dd>{bytes(channel.bytes)}</dd>
        </div>
      )}
      <div>
        <dt>Last activity</dt>
        <dd>
          <Ago value={channel.last_activity} />
        </dd>
      </div>
    </dl>
  )
}
