import type { Entry, Op } from '../../core/store/ports.ts'
import { ofEachAgent } from '../../core/upgrade/migration.ts'
import type { Migration } from '../../core/upgrade/migration.ts'
import type { McpRecord } from './records.ts'

/** Version 0.1.0 did not store this permission. Callers that may start any program have it. */
const secretsAllowed: Migration = {
	name: 'mcp-secrets-allowed',
	about: 'MCP servers',
	format: 2,
	places: (store) => ofEachAgent(store, ['mcp', 'server']),
	convert: (entries) =>
		(entries as Entry<McpRecord | Omit<McpRecord, 'secrets_allowed'>>[]).flatMap(({ key, value, rev }): Op[] =>
			'secrets_allowed' in value ? [] : [{ key, value: { ...value, secrets_allowed: value.trusted }, expect: rev }],
		),
}

export default [secretsAllowed]
