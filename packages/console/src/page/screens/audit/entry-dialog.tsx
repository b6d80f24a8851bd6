import { Dialog } from '../../components/dialog.tsx'
import { JsonView } from '../../components/json-view.tsx'
import { Time } from '../../components/time.tsx'
import { UserText } from '../../components/user-text.tsx'
import { Outcome } from './outcome.tsx'
import type { AuditEntry } from './read-audit.ts'

/** One entry with all its fields. */
export function EntryDialog({ entry, onClose }: { readonly entry: AuditEntry; readonly onClose: () => void }) {
  const texts: readonly (readonly [string, string | undefined])[] = [
    ['Caller', entry.client === '' ? 'not verified' : entry.client],
    ['Action', entry.action],
    ['Channel', entry.channel],
    ['Agent', entry.agent],
    ['Address', entry.address],
    ['Code', entry.code],
    ['Detail', entry.detail],
    ['Node', entry.node],
  ]
  return (
    <Dialog title="Audit entry" wide onClose={onClose}>
      <div class="stack">
        <dl class="facts">
          <dt>Time</dt>
          <dd>
            <Time value={entry.time} />
          </dd>
          <dt>Outcome</dt>
          <dd>
            <Outcome outcome={entry.outcome} />
          </dd>
          {texts.map(
            ([title, text]) =>
              text !== undefined && (
                <>
                  <dt>{title}</dt>
                  <dd>
                    <UserText max={1_024}>{text}</UserText>
                  </dd>
                </>
              ),
          )}
        </dl>
        <JsonView label="Entry as JSON" value={entry} />
      </div>
    </Dialog>
  )
}
