import { useState } from 'preact/hooks'

import { UserText } from './user-text.tsx'

/** Tags that are shown before the operator asks for all. */
const FIRST = 50

/** The tags of a message. */
export function TagsView({ tags }: { readonly tags: Readonly<Record<string, string>> }) {
  const [all, setAll] = useState(false)
  const entries = Object.entries(tags)
  if (entries.length === 0) return <span class="muted">none</span>
  const shown = all ? entries.slice(0, 2_000) : entries.slice(0, FIRST)
  return (
    <>
      <dl class="tags">
        {shown.map(([key, value]) => (
          <div key={key}>
            <dt>
              <UserText>{key}</UserText>
            </dt>
            <dd>
              <UserText max={2_000}>{value}</UserText>
            </dd>
          </div>
        ))}
      </dl>
      {shown.length < entries.length && (
        <p>
          <span class="muted">
            {shown.length} of {entries.length} tags{' '}
          </span>
          {!all && (
            <button type="button" class="quiet" onClick={() => setAll(true)}>
              Show more
            </button>
          )}
        </p>
      )}
    </>
  )
}
