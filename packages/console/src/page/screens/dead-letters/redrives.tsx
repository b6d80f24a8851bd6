import type { GetData } from '../../api/client.ts'
import { act } from '../../api/client.ts'
import { Store, useStore } from '../../api/store.ts'
import { useRoute } from '../../api/use-data.ts'
import { Badge, count, UserText } from '../../components/values.tsx'
import type { BadgeKind } from '../../components/values.tsx'
import { attempt, Panel } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { useMay } from '../../session/operator.ts'

type Redrive = GetData<'/api/redrives'>['items'][number]

const changes = new Store(0)

/** Reads the list of redrives again. */
export function redrivesChanged(): void {
  changes.set(changes.value + 1)
}

const KINDS: Readonly<Record<string, BadgeKind>> = {
  running: 'neutral',
  done: 'good',
  failed: 'bad',
  cancelled: 'warning',
}

/** The redrives of the node, with their progress and the messages that stay. */
export function Redrives() {
  const mayWrite = useMay('ReadWrite')
  const turn = useStore(changes)
  const { data, refresh } = useRoute('/api/redrives', {}, 2_000, turn)
  if (data === undefined || data.items.length === 0) return null
  const cancel = (id: string): void => attempt(() => act('cancel_redrive', { id }).finally(refresh))
  return (
    <Panel title="Redrives" note="of this node">
      <Table
        label="Redrives"
        rows={data.items}
        keyOf={({ id }) => id}
        columns={[
          { title: 'Dead-letter queue', text: 'channel' },
          { title: 'Selection', wideOnly: true, cell: selectionOf },
          {
            title: 'State',
            width: '7.5rem',
            cell: ({ state }) => <Badge kind={KINDS[state] ?? 'neutral'}>{state}</Badge>,
          },
          { title: 'Progress', width: '10rem', wideOnly: true, cell: progressOf },
          { title: 'Sent back', width: '6.5rem', count: 'redriven' },
          { title: 'Left', cell: leftOf },
          { title: 'Started', numeric: true, width: '8rem', wideOnly: true, ago: 'started_at' },
          {
            title: 'Action',
            numeric: true,
            width: '5.5rem',
            cell: ({ id, state }) =>
              state === 'running' &&
              mayWrite && (
                <button type="button" class="quiet" onClick={() => cancel(id)}>
                  Stop
                </button>
              ),
          },
        ]}
      />
    </Panel>
  )
}

function selectionOf({ source, reason }: Redrive) {
  if (source === undefined && reason === undefined) return <span class="muted">all</span>
  return <UserText>{[source, reason].filter((part) => part !== undefined).join(', ')}</UserText>
}

function progressOf({ examined, total, state }: Redrive) {
  return (
    <progress
      aria-label="Messages looked at"
      max={Math.max(1, total)}
      value={state === 'running' ? examined : Math.max(1, total)}
    />
  )
}

function leftOf({ left_count, left, error }: Redrive) {
  if (error !== undefined) return <UserText>{error}</UserText>
  if (left_count === 0) return <span class="muted">none</span>
  return <UserText>{`${count(left_count)}: ${left[0]?.reason ?? ''}`}</UserText>
}
