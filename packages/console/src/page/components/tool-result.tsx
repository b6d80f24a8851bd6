import type { PostData } from '../api/client.ts'
import { Badge } from './badge.tsx'
import { BodyView } from './body-view.tsx'
import { span } from './format.ts'

/** The result of a tool. */
export function ToolResult({ result }: { readonly result: PostData<'/api/actions/call_tool'> }) {
  const { is_error: failed, text, structured, milliseconds } = result
  const body = structured === undefined ? text : JSON.stringify(structured)
  return (
    <div class="stack" role="region" aria-label="Result" aria-live="polite">
      <p>
        <Badge kind={failed ? 'bad' : 'good'}>{failed ? 'The tool failed' : 'Success'}</Badge>{' '}
        <span class="muted">after {span(milliseconds)}</span>
      </p>
      <BodyView body={failed ? text : body} size={new TextEncoder().encode(failed ? text : body).length} />
    </div>
  )
}
