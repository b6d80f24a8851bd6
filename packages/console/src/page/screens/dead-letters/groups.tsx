import { useState } from 'preact/hooks'

import type { GetData } from '../../api/client.ts'
import { act } from '../../api/client.ts'
import { useData, useRoute } from '../../api/use-data.ts'
import { ChannelLink, count, plural, UserText } from '../../components/values.tsx'
import { Confirm } from '../../components/dialog-form.tsx'
import { notify, Panel, Reading } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import type { Place } from '../../router/location.ts'
import { setQuery } from '../../router/location.ts'
import { useMay } from '../../session/operator.ts'
import { Letters } from './letters.tsx'
import { redrivesChanged } from './redrives.tsx'

type Group = GetData<'/api/dead_letters'>['groups'][number]

/** What a redrive selects: all letters of the queue, or those of a group. */
type Selection = 'all' | Pick<Group, 'source' | 'reason'>

interface GroupsProps {
  readonly channel: string
  readonly place: Place
}

/** The dead letters of a queue by source and reason, and the letters of one group. */
export function Groups({ channel, place }: GroupsProps) {
  const { source, reason } = place.query
  const mayWrite = useMay('ReadWrite')
  const [asked, setAsked] = useState<Selection>()
  const { data, error, loading, refresh } = useRoute('/api/dead_letters', { channel }, 5_000)
  const chosen = data?.groups.find((group) => group.source === source && group.reason === reason)
  return (
    <>
      <Panel
        title={
          <>
            Groups in <ChannelLink type="queues" name={channel} />
          </>
        }
        note={data && noteOf(data)}
        actions={
          mayWrite &&
          data !== undefined &&
          data.groups.length > 0 && (
            <button type="button" class="primary" onClick={() => setAsked('all')}>
              Redrive all
            </button>
          )
        }
      >
        <Reading of={{ error, loading }} />
        {data && (
          <Table
            label="Groups of dead letters"
            empty="This queue holds no dead letters."
            rows={data.groups}
            keyOf={({ source, reason }) => JSON.stringify([source, reason])}
            onOpen={(group) => setQuery({ source: group.source, reason: group.reason })}
            isSelected={(group) => group === chosen}
            columns={[
              { title: 'From queue', cell: (group) => <ChannelLink type="queues" name={group.source} /> },
              { title: 'Reason', text: 'reason' },
              { title: 'Dead letters', width: '8rem', count: 'count' },
              { title: 'Oldest', numeric: true, width: '8rem', wideOnly: true, ago: 'oldest' },
              { title: 'Newest', numeric: true, width: '8rem', wideOnly: true, ago: 'newest' },
              {
                title: 'Action',
                numeric: true,
                width: '6.5rem',
                cell: (group) =>
                  mayWrite && (
                    <button type="button" class="quiet" onClick={() => setAsked(group)}>
                      Redrive
                    </button>
                  ),
              },
            ]}
          />
        )}
      </Panel>
      {chosen !== undefined && (
        <Letters channel={channel} source={chosen.source} reason={chosen.reason} onChanged={refresh} />
      )}
      {asked !== undefined && (
        <ConfirmRedrive channel={channel} selection={asked} onClose={() => setAsked(undefined)} onDone={refresh} />
      )}
    </>
  )
}

function noteOf({ groups, others, next_sequence }: GetData<'/api/dead_letters'>): string {
  const letters = groups.reduce((sum, group) => sum + group.count, 0)
  const rest = others === 0 ? '' : `, ${plural(others, 'other message')}`
  return `${plural(letters, 'dead letter')}${rest}${next_sequence === null ? '' : ', and more behind them'}`
}

interface ConfirmRedriveProps {
  readonly channel: string
  readonly selection: Selection
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Asks before a redrive, with the counts of a dry run, and starts it in the background. */
function ConfirmRedrive({ channel, selection, onClose, onDone }: ConfirmRedriveProps) {
  const only = selection === 'all' ? {} : { source: selection.source, reason: selection.reason }
  const { data, error, loading } = useData(`rehearse ${channel} ${JSON.stringify(only)}`, (signal) =>
    act('redrive_dead_letters', { channel, ...only, max_messages: 1_000, dry_run: true }, signal),
  )
  return (
    <Confirm
      title="Redrive dead letters"
      action="Redrive"
      onClose={onClose}
      run={async () => {
        const { total } = await act('start_redrive', { channel, ...only })
        notify(`A redrive of up to ${plural(total, 'message')} has started.`)
        redrivesChanged()
        onDone()
      }}
    >
      <Reading of={{ error, loading }} />
      {data && (
        <>
          <p>
            {data.would_redrive === 1_000 ? 'At least ' : ''}
            <strong>{plural(data.would_redrive ?? 0, 'message')}</strong> would go back:
          </p>
          <ul class="plain">
            {data.sources?.map((one) => (
              <li key={one.source}>
                {count(one.count)} to <UserText>{one.source}</UserText>
              </li>
            ))}
          </ul>
          {data.left.length > 0 && (
            <p>
              {plural(data.left.length, 'message')} would stay: {data.left[0]?.reason}
            </p>
          )}
          <p class="muted">Correct the cause first: a message that fails again comes back here.</p>
        </>
      )}
    </Confirm>
  )
}
