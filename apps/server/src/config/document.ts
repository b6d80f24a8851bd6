import { USAGE } from '../commands/usage.ts'
import type { Setting, SettingValue } from './settings.ts'
import { allowedText, SETTING_GROUPS } from './settings.ts'

const WIDTH = 100

/** What `--help` prints. */
export function helpText(): string {
  const lines = [
    'Usage: signalbox [flags]',
    ...Object.values(USAGE).map((usage) => `       ${usage}`),
    '',
    'Starts the broker: MCP, agents and CloudEvents on the shared listener, probes and metrics on the management listener.',
    '`token` makes a key pair and tokens for development; `policy check` says which rule of a policy decides;',
    '`backup` copies the store to a file while the server runs; `recover` copies what can be read of a damaged store.',
    '',
    'Flags',
    '  -c, --config FILE    read settings from a YAML file',
    '  --print-config       print the effective settings, with where each came from, and exit',
    '  -h, --help           print this and exit',
    '  -v, --version        print the version and exit',
    '',
    'Every setting is a flag, an environment variable and a key of the file. Later wins: default, file, environment, flag.',
    'Lists are written with commas.',
  ]
  for (const { title, settings } of SETTING_GROUPS) {
    lines.push('', title)
    for (const { flag, env, key, schema } of settings) {
      lines.push(`  --${flag} VALUE    ${env}    ${key}`)
      lines.push(...wrapped(schema.description.replaceAll('`', ''), WIDTH - 6).map((line) => `      ${line}`))
      lines.push(`      Default: ${defaultText(schema.default)}. Allowed: ${allowedText(schema)}.`)
    }
  }
  lines.push(
    '',
    'Exit codes: 0 stopped as asked, 1 could not start or failed, 2 a setting is unknown or not allowed.',
    '',
  )
  return lines.join('\n')
}

/** The text of `docs/reference/configuration.md`. */
export function configurationPage(): string {
  const lines = [
    '# Configuration',
    '',
    '<!-- Generated from apps/server/src/config/schema.ts by `npm run docs -w signalbox`. Do not edit. -->',
    '',
    'Every setting can be given in four ways; later wins:',
    '',
    '1. its default,',
    '2. a YAML file: `--config signalbox.yaml`, with the keys below as sections, in upper or lower case,',
    '3. an environment variable,',
    '4. a flag.',
    '',
    'The same setting in each of them:',
    '',
    '```yaml',
    'http:',
    '  port: 9091',
    '```',
    '',
    '```sh',
    'HTTP_PORT=9091 npm start',
    '```',
    '',
    '```sh',
    'npm start -- --http-port=9091',
    '```',
    '',
    'Lists are written with commas in environment variables and flags; in the file also as YAML lists. `--print-config` shows the effective settings and where',
    'each came from, in a form that `--config` reads; `--help` lists them all.',
    '',
    'A mistake stops the start, with exit code 2 and a line for each key that says what was given and what is allowed: a value that is not allowed, an unknown key',
    'or flag, or an unknown environment variable under a prefix that is ours (`AUTHENTICATION_`, `STORE_`, `QUEUE_`, `CORS_`, `NATS_`, `CONNECTORS…` and the',
    'like). Variables that Kubernetes sets for services (`STORE_SERVICE_HOST`) are left alone.',
  ]
  for (const { title, settings } of SETTING_GROUPS) {
    lines.push('', `## ${title === 'Signalbox' ? 'General' : title}`, '')
    for (const setting of settings) lines.push(...entry(setting))
    lines.pop()
  }
  return `${lines.join('\n')}\n`
}

function entry({ key, env, flag, schema }: Setting): string[] {
  return [
    `### \`${env}\``,
    '',
    schema.description,
    '',
    `- key \`${key}\`, flag \`--${flag}\``,
    `- default: \`${defaultText(schema.default)}\``,
    `- allowed: ${allowedText(schema).replaceAll('*', String.raw`\*`)}`,
    '',
  ]
}

function defaultText(value: SettingValue): string {
  return typeof value === 'object' ? value.join(', ') : String(value)
}

function wrapped(text: string, width: number): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line.length + word.length + 1 > width && line !== '') lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines
}
