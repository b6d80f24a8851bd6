import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { derivedLimits } from '@signalbox/http-kit/internal'
import { testFolder } from '@signalbox/testkit/test-folder'
import { describe, expect, test } from 'vitest'

import { configText, configurationPage, helpText } from '../src/config/document.ts'
import { fromFlags } from '../src/config/flags.ts'
import type { LoadedConfig } from '../src/config/load.ts'
import { createConfig, loadConfig } from '../src/config/load.ts'
import { SETTINGS } from '../src/config/settings.ts'
import { ServerError } from '../src/errors.ts'

type Env = Record<string, string>

function load(args: string[] = [], env: Env = {}): Promise<LoadedConfig> {
  return loadConfig({ flags: fromFlags(args), env })
}

async function problemsOf(args: string[], env: Env = {}): Promise<readonly string[]> {
  const error = await load(args, env).catch((error: unknown) => error)
  expect(error).toBeInstanceOf(ServerError)
  expect((error as ServerError).code).toBe('CONFIG_INVALID')
  return (error as ServerError).problems
}

function yamlFile(text: string): string {
  const file = join(testFolder(), 'signalbox.yaml')
  writeFileSync(file, text)
  return file
}

describe('names and defaults', () => {
  test('SVC-1 - every setting has the name and default that was decided, the ports 9090 and 8080 among them', () => {
    expect(Object.fromEntries(SETTINGS.map(({ env, schema }) => [env, schema.default]))).toEqual({
      CHANNEL_SETTINGS_FILE: '',
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: 9090,
      HTTP_ALLOWED_HOSTS: ['auto'],
      PUBLIC_URL: '',
      AGENT_CREDENTIALS_FILE: '',
      AGENTS_FILE: '',
      DNS_SERVERS: [],
      TRUSTED_PROXIES: [],
      TRUSTED_PROXY_HEADER: 'x-forwarded-for',
      WEBHOOKS_ENABLE: false,
      WEBHOOKS_KEY_FILE: '',
      WEBHOOKS_ALLOW: [],
      WEBHOOKS_MAX_AGE_SECONDS: 86_400,
      WEBHOOKS_MAX_PER_OWNER: 100,
      WEBHOOKS_MAX_FAILED_HANDSHAKES: 30,
      LIMITS_CALLER_REQUESTS_PER_SECOND: 0,
      LIMITS_CALLER_REQUESTS_IN_FLIGHT: 1_024,
      LIMITS_CALLER_BODY_BYTES: 67_108_864,
      LIMITS_CALLER_STREAMS: 256,
      LIMITS_CALLER_CHANNELS: 1_000,
      LIMITS_CALLER_AGENTS: 1_000,
      LIMITS_CALLER_RUNS: 1_000,
      LIMITS_CALLER_TASKS: 100,
      LIMITS_CALLER_WAITING_REQUESTS: 1_024,
      LIMITS_PROCESS_REQUESTS_IN_FLIGHT: 16_384,
      LIMITS_PROCESS_BODY_BYTES: 1_073_741_824,
      LIMITS_PROCESS_STREAMS: 4_096,
      LIMITS_PROCESS_UNREAD_BYTES: 268_435_456,
      LIMITS_PROCESS_MEMORY_PERCENT: 85,
      API_HOST: '127.0.0.1',
      API_PORT: 8080,
      API_TRUSTED_ORIGINS: ['auto'],
      API_AUTHENTICATION_ENABLE: false,
      API_SECURITY_CERT_FILE: '',
      API_SECURITY_KEY_FILE: '',
      API_SECURITY_CA_FILE: '',
      AUTHENTICATION_ENABLE: false,
      AUTHENTICATION_JWKS_URL: '',
      AUTHENTICATION_JWKS_FILE: '',
      AUTHENTICATION_KEY_FILE: '',
      AUTHENTICATION_SECRET: '',
      AUTHENTICATION_SECRET_FILE: '',
      AUTHENTICATION_ALGORITHMS: [],
      AUTHENTICATION_ISSUER: '',
      AUTHENTICATION_AUDIENCE: [],
      AUTHENTICATION_OAUTH_ENABLE: false,
      AUTHENTICATION_OAUTH_AUTHORIZATION_SERVERS: [],
      AUTHENTICATION_OAUTH_SCOPE_PREFIX: '',
      AUTHORIZATION_ENABLE: false,
      AUTHORIZATION_POLICY_FILE: '',
      SECURITY_CERT_FILE: '',
      SECURITY_KEY_FILE: '',
      SECURITY_CA_FILE: '',
      ENGINE: 'embedded',
      NATS_SERVERS: ['nats://127.0.0.1:4222'],
      NATS_SERVERS_FILE: '',
      NATS_CREDS_FILE: '',
      NATS_TLS_CA_FILE: '',
      NATS_TLS_CERT_FILE: '',
      NATS_TLS_KEY_FILE: '',
      NATS_REPLICAS: 1,
      STORE_PATH: './data',
      STORE_MAX_AGE_SECONDS: 0,
      STORE_MAX_BYTES: 0,
      QUEUE_MAX_MESSAGES: 0,
      QUEUE_MAX_BYTES: 0,
      MAX_CHANNELS: 10_000,
      AUDIT_MESSAGES: false,
      AUDIT_MAX_AGE_SECONDS: 2_592_000,
      AUDIT_MAX_BYTES: 268_435_456,
      METRICS_QUEUES: [],
      ROUTING_FILE: '',
      SETTLE_GRACE_MS: 250,
      SHUTDOWN_SECONDS: 25,
      CORS_ALLOW_ORIGINS: ['*'],
      CORS_ALLOW_METHODS: ['GET', 'POST', 'DELETE', 'OPTIONS'],
      CORS_ALLOW_HEADERS: [
        'Authorization',
        'Content-Type',
        'MCP-Protocol-Version',
        'MCP-Session-Id',
        'Last-Event-ID',
        'Accept',
      ],
      CORS_EXPOSE_HEADERS: ['MCP-Session-Id', 'MCP-Protocol-Version'],
      CORS_ALLOW_CREDENTIALS: false,
      CORS_MAX_AGE: 86_400,
      CONNECTORSMCP_ENABLE: true,
      CONNECTORSMCP_TRUSTED_ORIGINS: ['auto'],
      CONSOLE_ENABLE: true,
      CONSOLE_OAUTH_CLIENT_ID: '',
      CONSOLE_OAUTH_ISSUER: '',
      CONSOLE_OAUTH_SCOPES: ['openid'],
      CONSOLE_OAUTH_RESOURCE: '',
      CONSOLE_TRACE_URL: '',
      TELEMETRY_DESTINATIONS: [],
      CONNECTORSMCP_TOOL_TIMEOUT_SECONDS: 60,
      CONNECTORSMCP_MAX_ANSWER_BYTES: 262_144,
      CONNECTORSMCP_MAX_STREAMS: 1000,
      CONNECTORSMCP_TASKS_ENABLE: true,
      CONNECTORSMCP_TASKS_AFTER_MS: 3_000,
      CONNECTORSMCP_TASKS_TTL_SECONDS: 3_600,
      CONNECTORSMCP_TASKS_MAX: 10_000,
      CONNECTORSMCP_TASKS_MAX_RESULT_BYTES: 1_048_576,
      CONNECTORSMCP_RESPONDER_TOOLS: false,
      CONNECTORSMCP_INBOX_TOOLS: false,
      CONNECTORSMCP_LEASES: false,
      CONNECTORSMCP_EVENTS: false,
      CONNECTORSMCP_EVENT_TYPES_FILE: '',
      CONNECTORSMCP_EVENT_CODES: 'auto',
      CONNECTORSA2_A_ENABLE: true,
      CONNECTORSA2_A_AGENT_TTL_SECONDS: 300,
      CONNECTORSA2_A_ID_HOLD_SECONDS: 86_400,
      CONNECTORSA2_A_LOG: 'auto',
      CONNECTORSA2_A_LOG_SECONDS: 86_400,
      CONNECTORSA2_A_LOG_BYTES: 1_073_741_824,
      CONNECTORSA2_A_LOG_RUNS_MAX: 100_000,
      CONNECTORSA2_A_PARK_SECONDS: 604_800,
      CONNECTORSA2_A_DEFAULT_TIMEOUT_SECONDS: 300,
      CONNECTORSA2_A_MAX_TIMEOUT_SECONDS: 3600,
      CONNECTORSA2_A_NATIVE: 'auto',
      CONNECTORSA2_A_TASK_ISOLATION: 'records',
      CONNECTORSA2_A_ROOT_AGENT: '',
      CONNECTORSA2_A_MAX_AGENTS: 0,
      CONNECTORSA2_A_MAX_INSTANCES: 32,
      CONNECTORSA2_A_MAX_SSE_IDLE_SECONDS: 300,
      CONNECTORSA2_A_SLOW_CONSUMER_SECONDS: 30,
      CONNECTORSA2_A_TRUSTED_ORIGINS: ['auto'],
      CONNECTORSA2_A_AGENT_MAX_RESPONSE_BYTES: 10_485_760,
      CONNECTORSA2_A_AGENT_TLS_SKIP_VERIFY: false,
      CONNECTORSA2_A_AGENT_MAX_CONCURRENCY: 100,
      CONNECTORSA2_A_AGENT_URL_ALLOW: [],
      CONNECTORSA2_A_AGENT_URL_DENY: [],
      CONNECTORSA2_A_AGENT_CA_FILE: '',
      CONNECTORSA2_A_CARD_KEYS_FILE: '',
      CONNECTORSA2_A_AGENT_PROXY_URL: '',
      CONNECTORSA2_A_AGENT_PROXY_URL_FILE: '',
      CONNECTORSCE_ENABLE: true,
      CONNECTORSCE_TRUSTED_ORIGINS: ['auto'],
      CONNECTORSCE_TIMEOUT_SECONDS: 60,
      CONNECTORSCE_MAX_SSE_CONNECTIONS: 0,
      CONNECTORSCE_MAX_SSE_IDLE_SECONDS: 300,
      MAX_BODY_BYTES: 10_485_760,
      LOG_LEVEL: 'info',
      LOG_REQUESTS: true,
      LOG_FORMAT: 'json',
    })
  })

  test('configuration - key, variable and flag of a setting follow from its place', () => {
    const names = SETTINGS.map(({ key, env, flag }) => `${key} ${env} ${flag}`)
    expect(names).toContain('http.port HTTP_PORT http-port')
    expect(names).toContain('maxBodyBytes MAX_BODY_BYTES max-body-bytes')
    expect(names).toContain(
      'connectors.mcp.toolTimeoutSeconds CONNECTORSMCP_TOOL_TIMEOUT_SECONDS connectors-mcp-tool-timeout-seconds',
    )
    expect(new Set(SETTINGS.map(({ flag }) => flag)).size).toBe(SETTINGS.length)
  })

  test('configuration - every default is a value that its setting allows', () => {
    expect(createConfig()).toMatchObject({ http: { host: '127.0.0.1', port: 9090 } })
  })
})

describe('sources', () => {
  test('configuration - later sources win: default, file, environment, flag', async () => {
    const file = yamlFile('http: { port: 1001, host: 127.0.0.2 }\napi: { port: 2001 }\nmaxChannels: 7\n')
    const { config, origins } = await load(['--config', file, '--http-port=1003'], {
      HTTP_PORT: '1002',
      API_PORT: '2002',
    })
    expect(config.http).toMatchObject({ host: '127.0.0.2', port: 1003 })
    expect(config.api.port).toBe(2002)
    expect(config.maxChannels).toBe(7)
    expect(config.shutdownSeconds).toBe(25)
    expect(Object.fromEntries(origins)).toMatchObject({
      'http.port': 'flag --http-port',
      'http.host': `file ${file}`,
      'api.port': 'environment API_PORT',
      shutdownSeconds: 'default',
    })
  })

  test.each([
    ['a YAML list', 'cors: { allowOrigins: [https://a.example, https://b.example] }'],
    ['text with commas', 'cors: { allowOrigins: "https://a.example, https://b.example" }'],
  ])('configuration - a list in a file is %s', async (_form, yaml) => {
    const { config } = await load(['--config', yamlFile(yaml)])
    expect(config.cors.allowOrigins).toEqual(['https://a.example', 'https://b.example'])
  })

  test('configuration - lists in environment and flags are written with commas, and may be empty', async () => {
    const { config } = await load(['--cors-expose-headers='], { CORS_ALLOW_HEADERS: 'Accept, X-One' })
    expect(config.cors.exposeHeaders).toEqual([])
    expect(config.cors.allowHeaders).toEqual(['Accept', 'X-One'])
  })

  test('configuration - an empty file, and a section with nothing in it, set nothing', async () => {
    expect((await load(['--config', yamlFile('')])).config).toEqual(createConfig())
    expect((await load(['--config', yamlFile('http:\n  # port: 1\n')])).config).toEqual(createConfig())
  })

  test('configuration - limits in bytes derive from the memory, unless they are set, and --print-config says so', async () => {
    const { processBodyBytes, unreadBytes } = derivedLimits()
    const loaded = await load([], { LIMITS_CALLER_BODY_BYTES: String(2 ** 33) })
    expect(loaded.config.limits.caller.bodyBytes).toBe(2 ** 33)
    expect(loaded.config.limits.process).toMatchObject({ bodyBytes: processBodyBytes, unreadBytes })
    const text = await configText(loaded)
    expect(text).toContain(`bodyBytes: ${processBodyBytes} # default, derived from the memory`)
    expect(text).toContain(`unreadBytes: ${unreadBytes} # default, derived from the memory`)
    expect(text).toContain(`bodyBytes: ${2 ** 33} # environment LIMITS_CALLER_BODY_BYTES`)
  })

  test('configuration - the output of --print-config reads back as the same configuration', async () => {
    const first = await load(['--http-port=0', '--log-level=debug'], {
      CONNECTORSMCP_TRUSTED_ORIGINS: 'https://a.example:8443,http://[::1]:3000',
      STORE_PATH: "./it's: a # path",
      CORS_ALLOW_ORIGINS: '',
    })
    const text = await configText(first)
    expect(text).toContain('port: 0 # flag --http-port\n')
    expect(text).toContain('# environment STORE_PATH')
    expect(text).toContain('shutdownSeconds: 25 # default')
    expect((await load(['--config', yamlFile(text)])).config).toEqual(first.config)
  })
})

test('C4 - the limit on channels is 1,000 on a cluster and 10,000 on disk, unless it is set', async () => {
  const loaded = await Promise.all(
    [{}, { ENGINE: 'nats' }, { ENGINE: 'nats', MAX_CHANNELS: '10000' }].map((env) => load([], env)),
  )
  expect(loaded.map(({ config }) => config.maxChannels)).toEqual([10_000, 1_000, 10_000])
})

describe('mistakes', () => {
  test.each<[string, string[], Env, RegExp]>([
    ['a port that is text', [], { HTTP_PORT: 'http' }, /^http\.port: "http" \(environment HTTP_PORT\) .*0 to 65535$/],
    ['a port too high', ['--api-port=65536'], {}, /^api\.port: 65536 \(flag --api-port\) .*0 to 65535$/],
    ['a fraction', [], { SHUTDOWN_SECONDS: '1.5' }, /^shutdownSeconds: "1\.5" .*whole number from 0 to 3600$/],
    ['a negative number', [], { QUEUE_MAX_MESSAGES: '-1' }, /^queue\.maxMessages: -1 .*at least 0$/],
    ['a number in exponents', [], { MAX_BODY_BYTES: '1e6' }, /^maxBodyBytes: "1e6" /],
    ['a number past what is exact', [], { QUEUE_MAX_BYTES: '9007199254740993' }, /^queue\.maxBytes: /],
    ['an empty number', [], { HTTP_PORT: '' }, /^http\.port: "" /],
    ['a body limit below what a call needs', [], { MAX_BODY_BYTES: '10' }, /^maxBodyBytes: 10 .*1024/],
    ['a switch that is neither', [], { CONNECTORSMCP_ENABLE: 'yes' }, /^connectors\.mcp\.enable: "yes" .*true, false$/],
    ['a level that there is not', ['--log-level=verbose'], {}, /^log\.level: "verbose" .*fatal, error, warn, info/],
    ['a format that there is not', [], { LOG_FORMAT: 'xml' }, /^log\.format: "xml" .*json, pretty$/],
    ['an engine that there is not', [], { ENGINE: 'rabbit' }, /^engine: "rabbit" .*allowed: embedded, nats$/],
    ['a host with a port', [], { HTTP_HOST: 'http://x' }, /^http\.host: "http:\/\/x" .*an IP address or a host name/],
    ['replicas that make no majority', [], { NATS_REPLICAS: '2' }, /^nats\.replicas: 2 .*1, 3, 5$/],
    ['an address with a path', [], { NATS_SERVERS: 'nats://x/y' }, /^nats\.servers.*: .*addresses such as/],
    ['an empty store path', [], { STORE_PATH: '' }, /^store\.path: "" /],
    [
      'an origin without scheme',
      [],
      { CONNECTORSMCP_TRUSTED_ORIGINS: 'a.example' },
      /trustedOrigins: \["a\.example"\]/,
    ],
    [
      'an origin with a path',
      [],
      { API_TRUSTED_ORIGINS: 'https://a.example/x' },
      /^api\.trustedOrigins: .*auto, or \*/,
    ],
    [
      'an origin with a port too high',
      [],
      { API_TRUSTED_ORIGINS: 'https://a.example:99999' },
      /^api\.trustedOrigins: /,
    ],
    ['auto among others', [], { CONNECTORSMCP_TRUSTED_ORIGINS: 'auto,https://a.example' }, /trustedOrigins: \["auto"/],
    ['* among others', [], { CORS_ALLOW_ORIGINS: '*,https://a.example' }, /^cors\.allowOrigins: \["\*"/],
    ['a method that is none', [], { CORS_ALLOW_METHODS: 'GE T' }, /^cors\.allowMethods: /],
    [
      'an empty trusted origin list',
      [],
      { CONNECTORSMCP_TRUSTED_ORIGINS: '' },
      /^connectors\.mcp\.trustedOrigins: \[\]/,
    ],
  ])('configuration - %s stops the start', async (_what, args, env, problem) => {
    const problems = await problemsOf(args, env)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(problem)
  })

  test('configuration - credentials for every origin stop the start', async () => {
    expect(await problemsOf([], { CORS_ALLOW_CREDENTIALS: 'true' })).toEqual([
      expect.stringMatching(/^cors\.allowCredentials: true is not allowed with cors\.allowOrigins \*/),
    ])
    const { config } = await load([], { CORS_ALLOW_CREDENTIALS: 'true', CORS_ALLOW_ORIGINS: 'https://a.example' })
    expect(config.cors.allowCredentials).toBe(true)
  })

  test('configuration - a largest timeout below the default one stops the start', async () => {
    expect(await problemsOf([], { CONNECTORSA2_A_MAX_TIMEOUT_SECONDS: '299' })).toEqual([
      'connectors.a2a.maxTimeoutSeconds: 299 is less than connectors.a2a.defaultTimeoutSeconds, which is 300; allowed: at least that',
    ])
    const { config } = await load([], {
      CONNECTORSA2_A_MAX_TIMEOUT_SECONDS: '20',
      CONNECTORSA2_A_DEFAULT_TIMEOUT_SECONDS: '20',
    })
    expect(config.connectors.a2a).toMatchObject({ defaultTimeoutSeconds: 20, maxTimeoutSeconds: 20 })
  })

  test('configuration - values of the wrong type in a file stop the start', async () => {
    const file = yamlFile(
      'http: { port: "9090", host: 5 }\napi: 8080\nconnectors: { mcp: { enable: 1, maxStreams: null } }\nstore: []\ncors: { allowOrigins: { a: 1 } }',
    )
    expect(await problemsOf(['--config', file])).toEqual([
      expect.stringMatching(/^api: not a section .*allowed: api\.host, api\.port/),
      expect.stringMatching(/^store: not a section /),
      expect.stringMatching(/^http\.port: "9090" \(file .*\) is not allowed; allowed: a whole number/),
      expect.stringMatching(/^http\.host: 5 /),
      expect.stringMatching(/^connectors\.mcp\.enable: 1 /),
      expect.stringMatching(/^connectors\.mcp\.maxStreams: null /),
      expect.stringMatching(/^cors\.allowOrigins: \{"a":1\} /),
    ])
  })

  test('configuration - keys of a file are read without regard to case', async () => {
    const file = yamlFile(
      'Connectors: { A2A: { AgentTTLSeconds: 7, MaxTimeoutSeconds: 3000 }, MCP: { ToolTimeoutSeconds: 8 } }\nCORS: { AllowOrigins: [https://a.example] }\nSTORE: { path: /tmp/x }\n',
    )
    const { config, origins } = await load(['--config', file])
    expect(config.connectors.a2a).toMatchObject({ agentTtlSeconds: 7, maxTimeoutSeconds: 3000 })
    expect(config.connectors.mcp.toolTimeoutSeconds).toBe(8)
    expect([config.cors.allowOrigins, config.store.path]).toEqual([['https://a.example'], '/tmp/x'])
    expect(origins.get('connectors.a2a.agentTtlSeconds')).toBe(`file ${file}`)
  })

  test('configuration - two spellings of one key in a file stop the start', async () => {
    const file = yamlFile('http: { port: 1, Port: 2 }\nHTTP: { host: 127.0.0.1 }\n')
    expect(await problemsOf(['--config', file])).toEqual([
      expect.stringMatching(/^http\.Port: the same key as port \(file .*\); allowed: one of the two$/),
      expect.stringMatching(/^HTTP: the same key as http \(file .*\); allowed: one of the two$/),
    ])
  })

  test('configuration - any unknown key of a file stops the start', async () => {
    const file = yamlFile('http: { prot: 1 }\ntracing: { enable: true }\n__proto__: { x: 1 }\nhttp.port: 1\n')
    expect(await problemsOf(['--config', file])).toEqual([
      expect.stringMatching(/^http\.prot: unknown setting \(file .*\); did you mean http\.port\?/),
      expect.stringMatching(/^tracing: unknown setting/),
      expect.stringMatching(/^__proto__: unknown setting/),
      expect.stringMatching(/^"http\.port": unknown setting \(file .*\); did you mean http\.port\?/),
    ])
  })

  test.each([
    ['is not there', undefined, /cannot read .*ENOENT/],
    ['is not YAML', 'http: [', /is not YAML: .*line 1/],
    ['says a key twice', 'http: { port: 1, port: 2 }', /is not YAML: Map keys must be unique/],
    ['is a list', '- 1', /contains no settings/],
    ['is text', 'hello', /contains no settings/],
  ])('configuration - a file that %s stops the start', async (_what, text, problem) => {
    const file = text === undefined ? join(testFolder(), 'none.yaml') : yamlFile(text)
    const problems = await problemsOf(['--config', file])
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(problem)
  })

  test('configuration - a file that is larger than 4 MiB stops the start', async () => {
    const file = yamlFile(`http: { port: 1 }\n${'# more\n'.repeat(700_000)}`)
    expect(await problemsOf(['--config', file])).toEqual([
      expect.stringMatching(/^--config: cannot read .*4900018 bytes/),
    ])
  })

  test.runIf(process.platform === 'linux')('configuration - a pipe in place of the file stops the start', async () => {
    const pipe = join(testFolder(), 'pipe.yaml')
    execFileSync('mkfifo', [pipe])
    expect(await problemsOf(['--config', pipe])).toEqual([expect.stringMatching(/cannot read .*not a regular file/)])
  })

  test.each([
    ['STORE_PTH', /^STORE_PTH: unknown environment variable; did you mean STORE_PATH\?/],
    ['CONNECTORSMCP_ENABLED', /did you mean CONNECTORSMCP_ENABLE\?/],
    ['CORS_ORIGINS', /^CORS_ORIGINS: unknown/],
    ['QUEUE_LIMIT', /^QUEUE_LIMIT: unknown/],
    ['AUTHENTICATION_ENABLED', /did you mean AUTHENTICATION_ENABLE\?/],
    ['API_AUTHENTICATION_SECRET', /^API_AUTHENTICATION_SECRET: unknown/],
    ['AUTHORIZATION_POLICY', /^AUTHORIZATION_POLICY: unknown/],
    ['SECURITY_CERT', /^SECURITY_CERT: unknown/],
    ['CONNECTORSA2A_ENABLE', /did you mean CONNECTORSA2_A_ENABLE\?/],
    ['CONNECTORSA2_A_AGENT_PROXY', /^CONNECTORSA2_A_AGENT_PROXY: unknown/],
    ['CONNECTORSCE_ENABEL', /^CONNECTORSCE_ENABEL: unknown/],
    ['NATS_SERVER', /^NATS_SERVER: unknown environment variable; did you mean NATS_SERVERS\?/],
    ['AUDIT_MESSAGE', /^AUDIT_MESSAGE: unknown/],
    ['ROUTING_FIEL', /^ROUTING_FIEL: unknown/],
  ])('configuration - the variable %s, which is not there yet or misspelt, stops the start', async (name, problem) => {
    const problems = await problemsOf([], { [name]: 'hunter2' })
    expect(problems).toEqual([expect.stringMatching(problem)])
    expect(problems.join('\n')).not.toContain('hunter2')
  })

  test('configuration - variables of other programs are ignored', async () => {
    const { config } = await load([], {
      HTTP_PROXY: 'http://proxy:3128',
      API_KEY: 'x',
      LOG_FILE: '/x',
      STORE_SERVICE_HOST: '10.0.0.1',
      STORE_SERVICE_PORT_HTTP: '80',
      NATS_PORT: 'tcp://10.0.0.2:4222',
      NATS_PORT_4222_TCP_ADDR: '10.0.0.2',
      PATH: '/bin',
    })
    expect(config).toEqual(createConfig())
  })

  test.each([
    ['--http-prt=1', /^--http-prt: unknown flag; did you mean --http-port\?/],
    ['--nats-server=x', /^--nats-server: unknown flag; did you mean --nats-servers\?/],
    ['-x', /^-x: unknown flag/],
    ['--HTTP-PORT=1', /^--HTTP-PORT: unknown flag; did you mean --http-port\?/],
    ['--http-port', /^--http-port: a value is missing/],
    ['--config', /^--config: a value is missing/],
    ['--help=yes', /^--help: takes no value/],
    ['start', /^"start": not a flag/],
  ])('configuration - the argument %s stops the start', async (arg, problem) => {
    expect(await problemsOf([arg])).toEqual([expect.stringMatching(problem)])
  })

  test('configuration - a flag without its value does not swallow the next flag', async () => {
    expect(await problemsOf(['--http-host', '--http-port=0'])).toEqual([
      expect.stringMatching(/^--http-host: a value is missing/),
    ])
  })

  test('configuration - a flag given twice stops the start', async () => {
    expect(await problemsOf(['--http-port=1', '--http-port=2'])).toEqual([
      expect.stringMatching(/^--http-port: given more than once/),
    ])
  })

  test('configuration - every mistake is named at once, a line each', async () => {
    const problems = await problemsOf(['--http-port=x', '--nope=1'], { STORE_X: '1', LOG_LEVEL: 'loud' })
    expect(problems).toHaveLength(4)
    for (const problem of problems) expect(problem).not.toContain('\n')
  })

  test('configuration - a long value is cut', async () => {
    const [problem] = await problemsOf([], { LOG_LEVEL: 'x'.repeat(10_000) })
    expect(problem!.length).toBeLessThan(300)
  })

  test('configuration - a program that names an unknown setting gets an error', () => {
    expect(() => createConfig({ http: { prot: 1 } } as object)).toThrow(/^http\.prot: unknown setting/)
    expect(() => createConfig({ http: { port: -1 } })).toThrow(/^http\.port: -1 \(program\) is not allowed/)
  })
})

describe('documents', () => {
  test('configuration - docs/reference/configuration.md matches the schema (npm run docs -w signalbox)', () => {
    const page = readFileSync(new URL('../../../docs/reference/configuration.md', import.meta.url), 'utf8')
    expect(page).toBe(configurationPage())
  })

  test('configuration - page and help name every setting in all its forms', () => {
    for (const { key, env, flag } of SETTINGS) {
      expect(configurationPage()).toContain(`### \`${env}\``)
      expect(configurationPage()).toContain(`- key \`${key}\`, flag \`--${flag}\``)
      expect(helpText()).toMatch(new RegExp(`--${flag} .*${env} .*${key.replaceAll('.', String.raw`\.`)}`))
    }
  })
})
