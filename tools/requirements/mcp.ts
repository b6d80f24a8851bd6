import { section } from './requirement.ts'

export const MCP = section('MCP', 'specification, "MCP connector", "MCP tool result" and "Versioning"', [
  'POST /mcp carries initialize, tools/list, tools/call and ping',
  'GET /mcp is a keepalive stream',
  'a tool result has content, blocks of type text, and isError',
  'a channel that starts with _AGENTS_. makes the tool return isError: true',
  'missing required arguments give JSON-RPC error -32602, not an isError result',
  'a failure of the tool itself is HTTP 200 with isError: true',
  'the 11 core tools are always registered',
  'the 4 agent-bridge tools appear in tools/list only when the agent registry is present',
  'the protocol version is 2025-11-25',
])

export const TOOLS = section('TOOL', 'specification, "MCP tools"', [
  'queue_send has exactly the arguments, types and defaults of its table, and confirms naming the queue',
  'queue_send: a message with delay_seconds is invisible until then',
  'queue_send: a message with expiration_seconds is removed after it',
  'queue_send: after max_receive_count receives the message moves to dead_letter_queue',
  'queue_receive has exactly the arguments, defaults and ranges of its table',
  'queue_receive removes the messages that it returns and answers a JSON array of messages',
  'queue_receive waits up to wait_timeout_seconds for a message',
  'queue_receive on a channel that does not exist is an empty result, not an error',
  'queue_peek has exactly the arguments, defaults and ranges of its table',
  'queue_peek leaves the messages in the queue',
  'queue_peek on a channel that does not exist is an empty result',
  'events_publish has exactly the arguments and defaults of its table, and confirms naming the channel',
  'events_store_publish takes the arguments of events_publish and confirms naming the channel',
  'a stored event gets a monotonic sequence number',
  'events_store_read has exactly the arguments and ranges of its table; from_sequence and from_time exclude each other',
  'events_store_read answers a JSON array of stored events with sequence and timestamp; empty for an unknown channel',
  'events_store_read_latest answers the newest events first; count is 1 unless given; empty for an unknown channel',
  'command_send has exactly the arguments and defaults of its table, and confirms naming the channel',
  'command_send is isError: true when no subscriber exists in time or the subscriber rejects it',
  'query_send has exactly the arguments and defaults of its table, and returns the reply payload as its text',
  'query_send is isError: true when no subscriber exists in time or the subscriber rejects it',
  'channel_list answers a JSON array of channel descriptors, filtered by type and pattern; an empty list is a success',
  'channel_info answers the channel info object; a channel that does not exist is isError: true',
  'agent_list answers agent summaries, filtered by skill_tags; an empty list is a success',
  'agent_info answers the agent card; an agent that does not exist is isError: true',
  'agent_send forwards a message/send envelope and returns the reply payload',
  'agent_query forwards any method and returns the reply payload',
  'agent_send and agent_query are isError: true for an agent that does not exist or a timeout',
])

export const SHAPES = section('SHAPE', 'specification, "Message and channel shapes returned as JSON text by tools"', [
  'a received or peeked queue message has body, metadata and tags',
  'a stored event has body, metadata, tags, sequence and an ISO 8601 timestamp',
  'a channel descriptor has name, type and is_active',
  'channel info has name, type, is_active, incoming and outgoing',
  'an agent summary has agent_id, name and skills with id, name and tags',
])
