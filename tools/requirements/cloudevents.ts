import { section } from './requirement.ts'

export const CLOUDEVENTS = section('CE', 'docs/decisions/0007-cloudevents.md', [
  'the official SDK sends in structured and binary mode and gets equal events back over SSE',
  'every attribute and extension comes back as it was sent, integers and booleans with their type',
  'JSON data keeps its digits and order, other data its bytes',
  'header values are unquoted and percent-decoded once; invalid UTF-8 is 400',
  'sends take batches; a bad event in one sends nothing',
  'the channel is the subject, else ?channel=; a reserved one is 400 `reserved channel name`',
  'query parameters are strict, and 400 names the parameter, its value and the allowed values',
  'answers are {is_error, message, data} with the documented statuses; other paths are 404 in plain text',
  'sends answer 202 with the channel of each event',
  'commands answer 202 and queries 200; a rejection is is_error, no answer in time 503',
  'a frame carries brokerrequestid, and only the principal that received it can answer it, once; otherwise 404',
  'a receive is destructive, leased or a peek; receipts settle; the message of an expired lease is delivered again; ack_all drains',
  'subscriptions to events support groups and wildcards, which never show internal channels',
  'subscriptions to events stores begin at the requested place, and continue after Last-Event-ID without gap or repeat',
  'streams carry cloudevent, message and error events, keep alive, and end when idle',
  'over the limit a subscription is 429',
  'a slow subscriber of events loses events and gets their count; one of an events store loses none',
  'a client that disconnects leaves no subscription, request or timer',
  '500 subscribers of one channel get every event in order',
  'without credentials 401, from a foreign origin 403; streams end with their credentials',
])
