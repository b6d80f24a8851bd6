import { useEffect, useRef, useState } from 'preact/hooks'

import { toApiError } from '../../api/use-data.ts'
import { notify } from '../../components/feedback.tsx'
import { count, plural } from '../../components/format.ts'
import { saveFile } from '../../components/save-file.ts'
import type { AuditFilters } from './read-audit.ts'
import { MAX_EXPORTED, readAuditLines } from './read-audit.ts'

/** Saves the entries that match the filters as JSON lines. */
export function Export({ filters }: { readonly filters: AuditFilters }) {
  const [lines, setLines] = useState<number>()
  const running = useRef<AbortController>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const save = async (): Promise<void> => {
    const ended = new AbortController()
    running.current = ended
    setLines(0)
    try {
      const read = await readAuditLines(filters, ended.signal, setLines)
      saveFile('audit.jsonl', read)
      const cut = read.length === MAX_EXPORTED ? ' An export has no more: narrow the time for older ones.' : ''
      notify(`${plural(read.length, 'entry', 'entries')} saved.${cut}`)
    } catch (error) {
      if (!ended.signal.aborted) notify(`The export failed. ${toApiError(error).message}`)
    }
    setLines(undefined)
  }
  if (lines === undefined) {
    return (
      <button type="button" onClick={() => void save()}>
        Export JSON lines
      </button>
    )
  }
  return (
    <>
      <span role="status" class="muted">
        {count(lines)} entries read
      </span>
      <button type="button" onClick={() => running.current?.abort()}>
        Cancel
      </button>
    </>
  )
}
