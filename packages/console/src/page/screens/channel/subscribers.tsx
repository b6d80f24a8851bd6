import type { GetData } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import type { ChannelType } from '../../components/values.tsx'
import { ErrorOf, Panel } from '../../components/page.tsx'
import { UserText } from '../../components/values.tsx'
import { Table } from '../../components/table.tsx'

type Kind = GetData<'/api/subscribers'>['items'][number]['kind']

const KINDS: Readonly<Record<Kind, string>> = {
  subscriber: 'Subscriber',
  responder: 'Responder',
  receiver: 'Waiting receiver',
}

interface SubscribersProps {
  readonly type: ChannelType
  readonly channel: string
}

/** The clients that get the messages of a channel, as far as this node knows them. */
export function Subscribers({ type, channel }: SubscribersProps) {
  const { data, error } = useRoute('/api/subscribers', { type, channel }, 5_000)
  return (
    <Panel
      title={type === 'queues' ? 'Receivers' : 'Subscribers'}
      note={
        data && (
          <>
            on this node, <UserText>{data.node}</UserText>
          </>
        )
      }
    >
      <ErrorOf error={error} />
      {data && (
        <Table
          label="Clients on this node"
          empty={
            type === 'queues' ? 'No client waits for messages on this node.' : 'No client subscribes on this node.'
          }
          rows={data.items}
          keyOf={({ client_id, kind, pattern, group }) => JSON.stringify([client_id, kind, pattern, group])}
          columns={[
            { title: 'ClientID', text: 'client_id' },
            { title: 'Kind', cell: ({ kind }) => KINDS[kind] },
            { title: 'Group', wideOnly: true, cell: ({ group }) => group && <UserText>{group}</UserText> },
            {
              title: 'Pattern',
              wideOnly: true,
              cell: ({ pattern }) => pattern && <UserText>{pattern}</UserText>,
            },
            { title: 'Number', count: 'count' },
          ]}
        />
      )}
    </Panel>
  )
}
