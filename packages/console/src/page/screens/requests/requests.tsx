import { useState } from 'preact/hooks'

import type { GetData } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import { Badge, ChannelLink, count, plural, span, UserText } from '../../components/values.tsx'
import { Page, Panel, Reading } from '../../components/page.tsx'
import { Search } from '../../components/controls.tsx'
import type { Column } from '../../components/table.tsx'
import { Table } from '../../components/table.tsx'
import { href } from '../../router/location.ts'
import { useMay } from '../../session/operator.ts'
import type { ScreenProps } from '../screens.ts'
import { SendRequest } from './send-request.tsx'

type SeenRequest = GetData<'/api/requests'>['waiting'][number]

/** The commands and queries that wait for an answer on this node, and those that ended last. */
export function Requests({ place }: ScreenProps) {
  const { channel = '' } = place.query
  const [sending, setSending] = useState(false)
  const maySend = useMay('ReadWrite')
  const { data, error, loading, refresh } = useRoute('/api/requests', { channel }, 2_000)
  return (
    <Page
      title="Requests"
      note={data && `${count(data.waiting_count)} waiting on ${data.node}`}
      actions={
        <>
          <Search label="Channel name" name="channel" />
          {maySend && (
            <button type="button" class="primary" onClick={() => setSending(true)}>
              Send request
            </button>
          )}
        </>
      }
    >
      <Reading of={{ error, loading }} />
      {data && (
        <>
          <Panel
            title="Waiting"
            note={
              data.waiting.length < data.waiting_count
                ? `the oldest ${count(data.waiting.length)} of ${count(data.waiting_count)}`
                : undefined
            }
          >
            <Table
              label="Waiting requests"
              empty={`No command or query waits for an answer${channel === '' ? ' on this node.' : ' on this channel.'}`}
              rows={data.waiting}
              keyOf={({ id }) => id}
              columns={WAITING}
            />
          </Panel>
          <Panel title="Ended" note="The last ones of this node, newest first">
            <Table
              label="Ended requests"
              empty="No command or query has ended since the start of this node."
              rows={data.ended}
              keyOf={({ id }) => id}
              columns={ENDED}
            />
          </Panel>
          {data.unlisted > 0 && (
            <p class="muted">
              {plural(data.unlisted, 'request')} since the start {data.unlisted === 1 ? 'is' : 'are'} not listed: too
              many waited at once.
            </p>
          )}
        </>
      )}
      {sending && <SendRequest channel={channel} onClose={() => setSending(false)} onEnded={refresh} />}
    </Page>
  )
}

const COMMON: readonly Column<SeenRequest>[] = [
  {
    title: 'Channel',
    cell: ({ type, channel }) => <ChannelLink type={type} name={channel} />,
  },
  { title: 'Type', width: '6.5rem', cell: ({ type }) => (type === 'commands' ? 'Command' : 'Query') },
  { title: 'Sender', width: '11rem', wideOnly: true, text: 'client' },
]

const RESPONDER: Column<SeenRequest> = {
  title: 'Responder',
  width: '11rem',
  wideOnly: true,
  cell: ({ responder }) => (responder === null ? <span class="muted">none</span> : <UserText>{responder}</UserText>),
}

const SIZE: Column<SeenRequest> = { title: 'Body', width: '6rem', wideOnly: true, bytes: 'body_size' }

const TRACE: Column<SeenRequest> = {
  title: 'Message',
  width: '5.5rem',
  wideOnly: true,
  cell: ({ id }) => <a href={href(['trace'], { id })}>Trace</a>,
}

const WAITING: readonly Column<SeenRequest>[] = [
  ...COMMON,
  {
    title: 'State',
    width: '9rem',
    cell: ({ state }) => (
      <Badge kind={state === 'waiting' ? 'warning' : 'neutral'}>
        {state === 'waiting' ? 'No responder' : 'Delivered'}
      </Badge>
    ),
  },
  RESPONDER,
  SIZE,
  { title: 'Waits', width: '6rem', numeric: true, cell: ({ milliseconds }) => span(milliseconds) },
  TRACE,
]

const ENDED: readonly Column<SeenRequest>[] = [
  ...COMMON,
  { title: 'Outcome', width: '12rem', cell: ({ outcome }) => <Outcome outcome={outcome} /> },
  RESPONDER,
  SIZE,
  { title: 'Took', width: '6rem', numeric: true, cell: ({ milliseconds }) => span(milliseconds) },
  { title: 'Ended', width: '6.5rem', wideOnly: true, time: 'ended_at' },
  TRACE,
]

function Outcome({ outcome }: { readonly outcome: string | null }) {
  if (outcome === 'executed') return <Badge kind="good">Executed</Badge>
  if (outcome === 'rejected') return <Badge kind="warning">Rejected</Badge>
  return (
    <Badge kind="bad">
      <code>{outcome}</code>
    </Badge>
  )
}
