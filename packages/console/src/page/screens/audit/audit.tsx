import { useMemo, useState } from 'preact/hooks'

import type { ApiError } from '../../api/client.ts'
import { useData } from '../../api/use-data.ts'
import { useFurtherPages } from '../../api/use-pages.ts'
import { JsonView } from '../../components/body-view.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Empty, ErrorOf, Facts, Loading, Page } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import type { Column } from '../../components/table.tsx'
import { Badge, ChannelLink, count, isChannelType, Time, UserText } from '../../components/values.tsx'
import { href, setQuery } from '../../router/location.ts'
import type { ScreenProps } from '../screens.ts'
import { AuditFilterBar, filtersOf, isFiltered } from './filter-bar.tsx'
import { Export, readAuditPage } from './read-audit.tsx'
import type { AuditEntry, AuditFilters } from './read-audit.tsx'

const PAGE = 200

/** The audit log. Its filters are in the place, so that others can open the same view. */
export function Audit({ place }: ScreenProps) {
  const filters = useMemo(() => filtersOf(place.query), [place.query])
  const key = JSON.stringify(filters)
  return (
    <Page title="Audit" actions={<Export key={key} filters={filters} />}>
      <AuditFilterBar query={place.query} onChange={setQuery} />
      <Log key={key} filters={filters} />
    </Page>
  )
}

function Log({ filters }: { readonly filters: AuditFilters }) {
  const [opened, setOpened] = useState<AuditEntry>()
  const first = useData(`audit ${JSON.stringify(filters)}`, (signal) => readAuditPage(filters, null, PAGE, signal))
  const [error, setError] = useState<ApiError>()
  const {
    items: entries,
    next,
    more,
    restart,
  } = useFurtherPages({
    key: first.data?.next_cursor ?? '',
    first: first.data,
    load: async (cursor, signal) => {
      const page = await readAuditPage(filters, cursor, PAGE, signal)
      setError(undefined)
      return page
    },
    idOf: (entry) => entry,
    onError: setError,
  })
  const end = next === null
  return (
    <>
      <ErrorOf error={first.error ?? error} />
      {first.loading && <Loading />}
      {first.data && entries.length === 0 && (
        <Empty>
          {isFiltered(filters)
            ? 'No entry matches the filters.'
            : 'The log is empty. It records actions of operators, denials and changes of channels.'}
        </Empty>
      )}
      {entries.length > 0 && (
        <>
          <Table
            label="Audit log"
            rows={entries}
            keyOf={keyOf}
            columns={COLUMNS}
            onOpen={setOpened}
            onEnd={end ? undefined : more}
          />
          <p class="muted list-end" role="status">
            {count(entries.length)} entries{end ? ', to the end of the log' : ''}{' '}
            <button
              type="button"
              class="quiet"
              onClick={() => {
                restart()
                first.refresh()
              }}
            >
              Read again
            </button>
          </p>
        </>
      )}
      {opened && <EntryDialog entry={opened} onClose={() => setOpened(undefined)} />}
    </>
  )
}

/** The numbers of entries, which have no id of their own. */
const keys = new WeakMap<AuditEntry, string>()
let lastKey = 0

function keyOf(entry: AuditEntry): string {
  const key = keys.get(entry) ?? String(++lastKey)
  keys.set(entry, key)
  return key
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: 'Time', width: '10.5rem', time: 'time' },
  {
    title: 'Outcome',
    width: '7rem',
    wideOnly: true,
    cell: ({ outcome }) => <Outcome outcome={outcome} />,
  },
  {
    title: 'Caller',
    width: '10rem',
    cell: ({ client }) => (client === '' ? <span class="muted">not verified</span> : <UserText>{client}</UserText>),
  },
  {
    title: 'Action',
    width: '13rem',
    cell: ({ action, count: times = 1 }) => (
      <>
        <code>{action}</code>
        {times > 1 && <span class="muted"> × {count(times)}</span>}
      </>
    ),
  },
  { title: 'Target', wideOnly: true, cell: (entry) => <Target entry={entry} /> },
  {
    title: 'Detail',
    wideOnly: true,
    cell: ({ code, detail = '' }) => (
      <>
        {code !== undefined && <code>{code} </code>}
        <UserText>{detail}</UserText>
      </>
    ),
  },
]

function Target({ entry: { type, channel, agent } }: { readonly entry: AuditEntry }) {
  if (agent !== undefined) return <a href={href(['agents', agent])}>{agent}</a>
  if (channel === undefined) return null
  return isChannelType(type) ? <ChannelLink type={type} name={channel} /> : <UserText>{channel}</UserText>
}

/** One entry with all its fields. */
function EntryDialog({ entry, onClose }: { readonly entry: AuditEntry; readonly onClose: () => void }) {
  return (
    <Dialog title="Audit entry" wide onClose={onClose}>
      <div class="stack">
        <Facts
          of={{
            Time: <Time value={entry.time} />,
            Outcome: <Outcome outcome={entry.outcome} />,
            Caller: text(entry.client === '' ? 'not verified' : entry.client),
            Action: text(entry.action),
            Channel: text(entry.channel),
            Agent: text(entry.agent),
            Address: text(entry.address),
            Code: text(entry.code),
            Detail: text(entry.detail),
            Node: text(entry.node),
          }}
        />
        <JsonView label="Entry as JSON" value={entry} />
      </div>
    </Dialog>
  )
}

function text(value: string | undefined) {
  return value !== undefined && <UserText max={1_024}>{value}</UserText>
}

/** The end of an action in a word. */
function Outcome({ outcome }: Pick<AuditEntry, 'outcome'>) {
  if (outcome === 'success') return <Badge kind="good">Success</Badge>
  if (outcome === 'denied') return <Badge kind="warning">Denied</Badge>
  return <Badge kind="bad">Failure</Badge>
}
