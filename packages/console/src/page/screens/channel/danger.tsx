import { act } from '../../api/client.ts'
import { useData } from '../../api/use-data.ts'
import type { ChannelType } from '../../components/channel-link.tsx'
import { TYPE_NAMES } from '../../components/channel-link.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { ErrorOf, Loading, notify } from '../../components/feedback.tsx'
import { bytes, plural } from '../../components/format.ts'
import { go } from '../../router/location.ts'

interface PurgeQueueProps {
  readonly channel: string
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Asks before a purge, with the counts of a dry run. */
export function PurgeQueue({ channel, onClose, onDone }: PurgeQueueProps) {
  const { data, error } = useData(
    `purge ${channel}`,
    (signal) => act('purge_queue', { channel, dry_run: true }, signal),
    2_000,
  )
  return (
    <Confirm
      title="Purge queue"
      name={channel}
      action="Purge"
      onClose={onClose}
      run={async () => {
        const { purged } = await act('purge_queue', { channel })
        notify(`${plural(purged, 'message')} removed.`)
        onDone()
      }}
    >
      <ErrorOf error={error} />
      {data === undefined ? (
        <Loading />
      ) : (
        <p>
          This removes <strong>{plural(data.would_purge ?? 0, 'message')}</strong>, including delayed ones, for good.{' '}
          {plural(data.in_flight ?? 0, 'leased message')} {data.in_flight === 1 ? 'stays' : 'stay'}.
        </p>
      )}
    </Confirm>
  )
}

interface DeleteChannelProps {
  readonly type: ChannelType
  readonly channel: string
  readonly onClose: () => void
}

/** Asks before a channel is deleted, with the counts of a dry run. */
export function DeleteChannel({ type, channel, onClose }: DeleteChannelProps) {
  const { data, error } = useData(
    `delete ${type} ${channel}`,
    (signal) => act('delete_channel', { type, channel, dry_run: true }, signal),
    2_000,
  )
  const content = data?.would_delete
  return (
    <Confirm
      title="Delete channel"
      name={channel}
      action="Delete"
      onClose={onClose}
      run={async () => {
        await act('delete_channel', { type, channel })
        notify(`${TYPE_NAMES[type]} ${channel} deleted.`)
        go(['channels'])
      }}
    >
      <ErrorOf error={error} />
      {content === undefined ? (
        error === undefined && <Loading />
      ) : (
        <p>
          This deletes <strong>{plural(content.messages, 'message')}</strong> ({bytes(content.bytes)}) for good,{' '}
          {content.in_flight} of them leased. {plural(content.subscribers, 'subscriber')}{' '}
          {content.subscribers === 1 ? 'is' : 'are'} connected.
        </p>
      )}
    </Confirm>
  )
}
