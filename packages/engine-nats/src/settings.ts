import { Type } from 'typebox'

/**
 * The default maximum number of channels in a cluster: idle streams and consumers cost the servers memory
 * and CPU.
 */
export const DEFAULT_MAX_CHANNELS = 1_000

const file = (description: string) => Type.String({ default: '', allowed: 'a path; empty means none', description })

/**
 * The settings of the engine for a server's configuration: JSON Schema with a default and a description for
 * each. Loading them does not load the NATS client.
 */
export const NATS_SETTINGS = Type.Object(
  {
    servers: Type.Array(Type.String({ pattern: '^(?:(?:nats|tls)://)?[^\\s/,]{1,512}$' }), {
      default: ['nats://127.0.0.1:4222'],
      minItems: 1,
      allowed: 'addresses such as nats://127.0.0.1:4222',
      description:
        'Addresses of one cluster; one that answers is enough. They may contain user and password: nats://user:password@host:4222.',
    }),
    serversFile: file(
      'A file with these addresses alone, one on each line, instead of `NATS_SERVERS`. The server reads it at the start.',
    ),
    credsFile: file('A credentials file of a NATS user.'),
    tls: Type.Object(
      {
        caFile: file(
          'A PEM file with the authority that signed the certificates of the servers. If empty, the authorities of the system apply.',
        ),
        certFile: file('A PEM file with the certificate of this node, if the servers require one.'),
        keyFile: file('A PEM file with the private key of that certificate.'),
      },
      { additionalProperties: false, description: 'TLS to the servers' },
    ),
    replicas: Type.Integer({
      enum: [1, 3, 5],
      default: 1,
      description:
        'The number of servers that store each message: 1, 3 or 5. A change applies to channels that are created later.',
    }),
  },
  { additionalProperties: false, description: 'The NATS cluster, with `engine: nats`' },
)

export type NatsSettings = Type.Static<typeof NATS_SETTINGS>

/** A connection to NATS that others can use or read. */
export interface OpenConnection {
  /** The servers on other machines, without user and password. */
  readonly servers: readonly string[]
  readonly message: string
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i

/**
 * Finds servers on other machines that are reached without credentials or without TLS. The nodes check
 * authentication, policy and roles; a client that connects to the NATS servers passes none of these checks.
 */
export function openConnection({ servers, credsFile, tls }: NatsSettings): OpenConnection | undefined {
  const remote = servers.filter((server) => !LOOPBACK.test(hostOf(server)))
  if (remote.length === 0) return undefined
  const { caFile, certFile } = tls
  const hasTls = caFile !== '' || certFile !== '' || remote.every((server) => server.startsWith('tls://'))
  // The certificate of this node is a credential if the servers verify it.
  const hasCredentials =
    credsFile !== '' || certFile !== '' || remote.some((server) => withoutScheme(server).includes('@'))
  if (hasTls && hasCredentials) return undefined
  const missing = [
    ...(hasCredentials ? [] : ['credentials (set NATS_CREDS_FILE, or put user and password into NATS_SERVERS)']),
    ...(hasTls ? [] : ['TLS (set NATS_TLS_CA_FILE, or use tls:// addresses in NATS_SERVERS)']),
  ]
  return {
    servers: remote.map((server) => withoutScheme(server).replace(/^.*@/, '')),
    message: `NATS is on another machine and is reached without ${missing.join(' and without ')}. Authentication and policies do not apply to a client that connects to NATS directly: it can read and change every message. docs/guides/security.md has a configuration.`,
  }
}

/** Addresses may contain a password, which must not be shown. */
const PASSWORD = /^((?:\w+:\/\/)?[^:@]*):[^@]*@/

/** Returns the settings without passwords, for texts. */
export function withoutPasswords(settings: NatsSettings): NatsSettings {
  return { ...settings, servers: settings.servers.map((server) => server.replace(PASSWORD, '$1:…@')) }
}

function withoutScheme(server: string): string {
  return server.replace(/^\w+:\/\//, '')
}

function hostOf(server: string): string {
  return withoutScheme(server).replace(/^.*@/, '').replace(/:\d+$/, '')
}
