import { useMemo, useState } from 'preact/hooks'

import { act, get } from '../../api/client.ts'
import type { GetData, PostData } from '../../api/client.ts'
import { useData } from '../../api/use-data.ts'
import { BodyView, Code, JsonView } from '../../components/body-view.tsx'
import { CallState, useCall } from '../../components/call.tsx'
import { Segments } from '../../components/controls.tsx'
import { NeedsRole, Panel, Problem } from '../../components/page.tsx'
import { fieldsOf, SchemaForm, valueOf } from '../../components/schema-form.tsx'
import { CopyButton } from '../../components/save-and-copy.tsx'
import { Badge, span } from '../../components/values.tsx'

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
          {form !== 'schema' && <CopyButton text={text} />}
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

/** The result of a tool. */
function ToolResult({ result }: { readonly result: PostData<'/api/actions/call_tool'> }) {
  const { is_error: failed, text, structured, milliseconds } = result
  const body = structured === undefined ? text : JSON.stringify(structured)
  return (
    <div class="stack" role="region" aria-label="Result" aria-live="polite">
      <p>
        <Badge kind={failed ? 'bad' : 'good'}>{failed ? 'The tool failed' : 'Success'}</Badge>{' '}
        <span class="muted">after {span(milliseconds)}</span>
      </p>
      <BodyView body={failed ? text : body} />
    </div>
  )
}

/** Returns the call for a shell. */
function curlOf(url: string, name: string, args: Readonly<Record<string, unknown>>): string {
  const request = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
  return [
    `curl -s ${url} \\`,
    `  -H 'content-type: application/json' \\`,
    `  -H 'accept: application/json, text/event-stream' \\`,
    `  -d ${quoted(JSON.stringify(request))}`,
  ].join('\n')
}

/** Returns a word for a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** Returns a program for the official MCP client of TypeScript. */
function programOf(url: string, name: string, args: Readonly<Record<string, unknown>>): string {
  return `import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const client = new Client({ name: 'example', version: '1.0.0' })
await client.connect(new StreamableHTTPClientTransport(new URL(${JSON.stringify(url)})))
const result = await client.callTool(${JSON.stringify({ name, arguments: args }, undefined, 2)})
console.log(result.content)
await client.close()`
}

/** Returns the address of `/mcp` as the operator's browser would reach it, by the settings of the server. */
async function readSharedUrl(signal: AbortSignal): Promise<string> {
  const { items } = await get('/api/settings', {}, signal)
  const { shared } = await get('/api/security', {}, signal)
  const port = items.find(({ key }) => key === 'http.port')?.value
  const scheme = shared.tls ? 'https' : 'http'
  return `${scheme}://${location.hostname}:${typeof port === 'number' ? port : 9090}/mcp`
}
