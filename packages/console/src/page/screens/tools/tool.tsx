import { useMemo, useState } from 'preact/hooks'

import type { GetData, PostData } from '../../api/client.ts'
import { act } from '../../api/client.ts'
import { useData } from '../../api/use-data.ts'
import { CallState } from '../../components/call-state.tsx'
import { Problem } from '../../components/feedback.tsx'
import { Segments } from '../../components/fields.tsx'
import { Code, JsonView } from '../../components/json-view.tsx'
import { NeedsRole } from '../../components/needs-role.tsx'
import { Panel } from '../../components/page.tsx'
import { SchemaForm } from '../../components/schema-form.tsx'
import { fieldsOf, valueOf } from '../../components/schema-fields.ts'
import { ToolResult } from '../../components/tool-result.tsx'
import { useCall } from '../../components/use-call.ts'
import { notify } from '../../components/feedback.tsx'
import { curlOf, programOf } from './call-code.ts'
import { readSharedUrl } from './shared-url.ts'

type ListedTool = GetData<'/api/tools'>['items'][number]

type Form = 'curl' | 'typescript' | 'schema'

const FORMS: readonly (readonly [Form, string])[] = [
  ['curl', 'curl'],
  ['typescript', 'TypeScript'],
  ['schema', 'JSON Schema'],
]

/** One tool: a form for its arguments, its call, and the result. */
export function Tool({ tool }: { readonly tool: ListedTool }) {
  const { name, title, description, input_schema: schema, annotations } = tool
  const fields = useMemo(() => fieldsOf(schema), [schema])
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const call = useCall<PostData<'/api/actions/call_tool'>>()
  const args = argumentsOf(() => valueOf(fields, schema, values))
  const submit = (event: Event): void => {
    event.preventDefault()
    const { value } = args
    if (value !== undefined) call.start((signal) => act('call_tool', { name, arguments: value }, signal))
  }
  return (
    <section aria-label={name}>
      <h2>
        {title} <code class="muted">{name}</code>
      </h2>
      <p class="prose">{description}</p>
      {annotations['destructiveHint'] === true && <p class="muted">This tool can remove data.</p>}
      <NeedsRole role="ReadWrite" to="To call a tool">
        <form class="stack form tool-form" onSubmit={submit}>
          {fields.length === 0 && <p class="muted">The tool has no arguments.</p>}
          <SchemaForm fields={fields} values={values} onChange={setValues} />
          {args.problem !== undefined && <Problem>{args.problem}</Problem>}
          <div class="buttons start">
            <button type="submit" class="primary" disabled={call.since !== undefined || args.value === undefined}>
              Call
            </button>
          </div>
        </form>
        <CallState call={call} />
        {call.result && <ToolResult result={call.result} />}
      </NeedsRole>
      <CallCode tool={tool} args={args.value ?? {}} />
    </section>
  )
}

interface Arguments {
  readonly value?: Readonly<Record<string, unknown>>
  readonly problem?: string
}

function argumentsOf(read: () => Readonly<Record<string, unknown>>): Arguments {
  try {
    return { value: read() }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

interface CallCodeProps {
  readonly tool: ListedTool
  readonly args: Readonly<Record<string, unknown>>
}

function CallCode({ tool, args }: CallCodeProps) {
  const [form, setForm] = useState<Form>('curl')
  const { data: url = 'http://127.0.0.1:9090/mcp' } = useData('shared url', readSharedUrl)
  const text = form === 'curl' ? curlOf(url, tool.name, args) : programOf(url, tool.name, args)
  return (
    <Panel
      title="The same call"
      note="With authentication, add the header Authorization"
      actions={
        <>
          <Segments label="Form of the call" value={form} options={FORMS} onChange={setForm} />
          {form !== 'schema' && navigator.clipboard !== undefined && (
            <button
              type="button"
              onClick={() => void navigator.clipboard.writeText(text).then(() => notify('Copied.'))}
            >
              Copy
            </button>
          )}
        </>
      }
    >
      {form === 'schema' ? (
        <JsonView label="Schema" value={{ input: tool.input_schema, output: tool.output_schema }} />
      ) : (
        <Code label="Call">{text}</Code>
      )}
    </Panel>
  )
}
