import { useEffect, useRef, useState } from 'preact/hooks'

import { useStore } from '../../api/store.ts'
import {
  Badge,
  ChannelLink,
  isChannelType,
  plural,
  Time,
  TYPE_FILTERS,
  TYPE_NAMES,
  UserCode,
  UserText,
} from '../../components/values.tsx'
import { BodyPreview, BodyView } from '../../components/body-view.tsx'
import type { ChannelType } from '../../components/values.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Facts, Page, Problem } from '../../components/page.tsx'
import { Search, Select } from '../../components/controls.tsx'
import type { Column } from '../../components/table.tsx'
import { Table } from '../../components/table.tsx'
import { TagsView } from '../../components/tags.tsx'
import { href, setQuery } from '../../router/location.ts'
import { token } from '../../session/token.ts'
import type { ScreenProps } from '../screens.ts'
import type { MonitorState, Seen } from './monitor.ts'
import { openMonitor } from './monitor.ts'

/** The messages that the page keeps, newest first. */
const MAX_KEPT = 2_000
/** The page draws new messages at most so often, in ms. */
const DRAW_MS = 250

const DIRECTIONS = [
  ['both', 'In and out'],
  ['in', 'Accepted'],
  ['out', 'Delivered'],
] as const

const COLUMNS: readonly Column<Seen>[] = [
  { title: 'Time', width: '6rem', time: 'time' },
  { title: 'Way', width: '5rem', cell: ({ direction }) => (direction === 'in' ? '→ in' : '← out') },
  { title: 'Type', width: '7rem', wideOnly: true, cell: ({ type }) => TYPE_NAMES[type] },
  {
    title: 'Channel',
    width: '14rem',
    cell: ({ type, channel }) => <ChannelLink type={type} name={channel} />,
  },
  { title: 'Client', width: '9rem', wideOnly: true, text: 'client' },
  { title: 'Body', cell: (row) => <BodyPreview of={row} /> },
  { title: 'Size', width: '6rem', wideOnly: true, bytes: 'body_size' },
]

/** The messages of all channels as they pass. */
export function Live({ place }: ScreenProps) {
  const { channel = '', type, direction } = place.query
  const way = direction === 'in' || direction === 'out' ? direction : undefined
  const [paused, setPaused] = useState(false)
  const [open, setOpen] = useState<Seen>()
  const monitor = useMonitor(channel, isChannelType(type) ? type : undefined, way, paused)
  return (
    <Page
      title="Live tail"
      note={<StateOf state={monitor.state} paused={paused} />}
      actions={
        <>
          <Search label="Channel, such as orders.*" name="channel" changes={(text) => ({ channel: text.trim() })} />
          <Select
            label="Type"
            value={isChannelType(type) ? type : 'all'}
            options={TYPE_FILTERS}
            onChange={(value) => setQuery({ type: value === 'all' ? undefined : value })}
          />
          <Select
            label="Direction"
            value={way ?? 'both'}
            options={DIRECTIONS}
            onChange={(value) => setQuery({ direction: value === 'both' ? undefined : value })}
          />
          <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
            {paused ? 'Continue' : 'Pause'}
          </button>
          <button type="button" onClick={monitor.clear}>
            Clear
          </button>
        </>
      }
    >
      {monitor.reason !== undefined && <Problem>{monitor.reason}</Problem>}
      {monitor.dropped > 0 && (
        <p class="muted">{plural(monitor.dropped, 'message')} not shown: messages came faster than this page reads.</p>
      )}
      {monitor.missed > 0 && <p class="muted">{plural(monitor.missed, 'message')} passed while the list was paused.</p>}
      <Table
        label="Messages"
        empty="No message has passed since this screen was opened. Filters: a name, * for one part, > for the rest."
        columns={COLUMNS}
        rows={monitor.messages}
        keyOf={({ number }) => String(number)}
        onOpen={(seen) => {
          setPaused(true)
          setOpen(seen)
        }}
      />
      {open !== undefined && <SeenDialog seen={open} onClose={() => setOpen(undefined)} />}
    </Page>
  )
}

function StateOf({ state, paused }: { readonly state: MonitorState; readonly paused: boolean }) {
  if (state === 'open') return <Badge kind={paused ? 'warning' : 'good'}>{paused ? 'Paused' : 'Live'}</Badge>
  return <Badge kind="warning">{state === 'connecting' ? 'Connecting' : 'Disconnected'}</Badge>
}

function useMonitor(
  channel: string,
  type: ChannelType | undefined,
  direction: 'in' | 'out' | undefined,
  paused: boolean,
) {
  const [messages, setMessages] = useState<readonly Seen[]>([])
  const [state, setState] = useState<MonitorState>('connecting')
  const [reason, setReason] = useState<string>()
  const [dropped, setDropped] = useState(0)
  const [missed, setMissed] = useState(0)
  const isPaused = useRef(paused)
  isPaused.current = paused
  const bearer = useStore(token)
  useEffect(() => {
    if (!paused) setMissed(0)
  }, [paused])
  useEffect(() => {
    let fresh: Seen[] = []
    let passed = 0
    setMessages([])
    setDropped(0)
    const draw = setInterval(() => {
      const added = fresh.toReversed()
      fresh = []
      if (added.length > 0) setMessages((old) => [...added, ...old].slice(0, MAX_KEPT))
      if (passed > 0) setMissed((old) => old + passed)
      passed = 0
    }, DRAW_MS)
    const end = openMonitor(
      { channel, type, direction },
      {
        onState: (next, why) => {
          setState(next)
          if (next !== 'connecting') setReason(why)
        },
        onMessage: (message) => {
          if (isPaused.current) passed++
          else if (fresh.push(message) > MAX_KEPT) fresh.shift()
        },
        onDropped: setDropped,
      },
    )
    return () => {
      clearInterval(draw)
      end()
    }
  }, [channel, type, direction, bearer])
  const clear = (): void => {
    setMessages([])
    setMissed(0)
  }
  return { messages, state, reason, dropped, missed, clear }
}

function SeenDialog({ seen, onClose }: { readonly seen: Seen; readonly onClose: () => void }) {
  return (
    <Dialog title="Message" wide onClose={onClose}>
      <div class="stack">
        <Facts
          of={{
            Id: (
              <>
                <UserCode>{seen.id}</UserCode> <a href={href(['trace'], { id: seen.id })}>Trace</a>
              </>
            ),
            Channel: (
              <>
                <ChannelLink type={seen.type} name={seen.channel} /> <span class="muted">{TYPE_NAMES[seen.type]}</span>
              </>
            ),
            [seen.direction === 'in' ? 'Sender' : 'Receiver']: <UserText>{seen.client}</UserText>,
            Time: <Time value={seen.time} />,
            Metadata: seen.metadata !== '' && <UserText max={2_000}>{seen.metadata}</UserText>,
            Tags: <TagsView tags={seen.tags} />,
          }}
        />
        <BodyView body={seen.body} encoding={seen.body_encoding} size={seen.body_size} />
        {seen.truncated && (
          <p class="muted">The monitor shows the first 4 KiB of a body. The channel has the whole message.</p>
        )}
      </div>
    </Dialog>
  )
}
