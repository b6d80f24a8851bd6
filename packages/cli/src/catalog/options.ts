import type { OptionDescription, Options } from '../command-line.ts'

// Options that several commands have.

export const JSON_OUTPUT: Options = { json: { help: 'Print JSON: one value a line.' } }

export const TLS: Options = {
  'ca-file': {
    value: 'FILE',
    help: "The authorities of the server's certificate in PEM (SIGNALBOX_CA_FILE). Default: those of the system.",
  },
  'cert-file': {
    value: 'FILE',
    help: 'Your certificate in PEM, for a server that requires one (SIGNALBOX_CERT_FILE).',
  },
  'key-file': { value: 'FILE', help: 'The private key of your certificate in PEM (SIGNALBOX_KEY_FILE).' },
}

export const CONNECTION: Options = {
  url: { value: 'URL', help: 'The shared listener (SIGNALBOX_URL). Default: the context, else http://127.0.0.1:9090.' },
  token: {
    value: 'TOKEN',
    help: 'The bearer token. Others can see it on this line: prefer SIGNALBOX_TOKEN or a context.',
  },
  context: { value: 'NAME', help: 'The context (SIGNALBOX_CONTEXT). Default: that of context use.' },
  ...TLS,
  ...JSON_OUTPUT,
}

export const MANAGEMENT: Options = {
  api: {
    value: 'URL',
    help: 'The management listener (SIGNALBOX_API_URL). Default: the context, else http://127.0.0.1:8080.',
  },
  ...CONNECTION,
}

export const STORE: Options = {
  'store-path': { value: 'FOLDER', help: 'The folder of the store.' },
  config: { value: 'FILE', help: 'The configuration file of the server.' },
  context: { value: 'NAME', help: 'The context (SIGNALBOX_CONTEXT): its server must be on this machine.' },
  ...JSON_OUTPUT,
}

export const MESSAGE: Options = {
  id: { value: 'ID', help: 'The id of the message: a repeat within two minutes is stored once. Default: a random id.' },
  type: { value: 'TYPE', help: 'The CloudEvents type.' },
  'content-type': {
    value: 'TYPE',
    help: 'Default: application/json for a JSON object or array, text/plain for other text.',
  },
}

export const LINES: Options = { lines: { help: 'Send each line of BODY as a separate message.' } }

export const CHANNEL_TYPE: OptionDescription = {
  value: 'TYPE',
  default: 'queues',
  help: 'The type of the channels: queues, events, events_store, commands or queries. Default: queues.',
}

export const DRY_RUN: OptionDescription = { help: 'Check the settings and list the channels, and change nothing.' }

export const FOLLOWED: Options = {
  max: { value: 'N', help: 'End after this number of messages.' },
  wait: { value: 'TIME', help: 'End with code 3 if this time passes without a message. Default: no limit.' },
}
