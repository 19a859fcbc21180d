/** Checks of the adapter's description, and of `connect`. */
import Joi from 'joi'
import type { ChannelAdapter } from '../../../plugins/channels/adapter.ts'
import { has, must, same } from './harness.ts'
import type { Check } from './harness.ts'

export const connectingChecks: Check[] = [
	{
		name: 'describes itself',
		async run({ adapter }) {
			for (const name of [adapter.type, ...(adapter.aliases ?? [])]) {
				must(
					/^[a-z0-9_]{1,32}$/.test(name),
					`a type is 1-32 characters of a-z, 0-9 and _, unlike ${JSON.stringify(name)}`,
				)
			}
			must(typeof adapter.label === 'string' && adapter.label !== '', 'label is the name of the platform')
			checkAbilities(adapter.can)
		},
	},
	{
		name: 'accepts its config, and keys that are not its own',
		needs: ['config'],
		async run(harness) {
			const { adapter } = harness
			const schema = has(adapter.config, 'config', 'config').call(adapter, Joi)
			must(Joi.isSchema(schema) && schema.type === 'object', 'config(joi) returns a joi.object')
			// The gateway has its own keys, and keeps unknown ones.
			const known = { agent_id: 'main', answer: 'all', allowed_senders: ['1'], x_unknown: { deep: [1] } }
			const { error, value } = harness.check({ ...known, ...harness.platform.config })
			must(error === undefined, `its config and the keys of the gateway are accepted: ${error?.message}`)
			for (const [key, kept] of Object.entries(known)) same(value[key], kept, `config.${key} is not changed`)
		},
	},
	{
		name: 'does not let every caller choose an address',
		needs: ['unguarded'],
		async run({ adapter, platform }) {
			const unguarded = has(adapter.unguarded, 'unguarded', 'unguarded')
			const known: string[] = Object.keys(adapter.config?.(Joi).describe().keys ?? {})
			for (const key of unguarded) {
				must(known.includes(key), `unguarded names keys of its config, unlike ${JSON.stringify(key)}`)
				const isAddress = key === 'api_root' || /^\w+:\/\//.test(String(platform.config[key]))
				must(!isAddress, `unguarded names no key that determines where to connect, unlike ${key}`)
			}
		},
	},
	{
		name: 'connects, and provides the methods for its abilities',
		async run(harness) {
			const { connection } = await harness.connect()
			const { can } = harness.adapter
			const previews = Object.values(can.preview ?? {})
			must(connection.name === undefined || typeof connection.name === 'string', 'name is text')
			for (const method of ['send', 'close'] as const) isMethod(connection[method], method)
			if (previews.includes('edit')) isMethod(connection.edit, 'edit', 'can.preview')
			if (previews.includes('draft')) isMethod(connection.draft, 'draft', 'can.preview')
			if (can.files) isMethod(connection.sendFile, 'sendFile', 'can.files')
			if (can.typing_ms !== undefined) isMethod(connection.typing, 'typing', 'can.typing_ms')
		},
	},
	{
		name: 'is refused with a wrong token',
		async run(harness) {
			const { wrong_token } = harness.platform
			const error = await harness.errorOf(
				harness.connect({ token: wrong_token }),
				'connect throws if the token is wrong',
			)
			must(
				error.code === 'refused',
				`a wrong token is \`refused\`, otherwise the gateway retries forever; code is ${error.code}: ${error.message}`,
			)
			must(!`${error.message} ${error.stack}`.includes(wrong_token), 'no error shows the token')
			await nothingIsOpen(harness, 'nothing is open after a failed connection')
		},
	},
	{
		name: 'stops connecting when the signal aborts',
		async run(harness) {
			await harness.errorOf(
				harness.connect({ signal: AbortSignal.abort() }),
				'connect throws if the signal has aborted',
			)
			await nothingIsOpen(harness, 'nothing is opened if the signal has aborted')
			if (!harness.platform.silent) return
			harness.platform.silent()
			const controller = new AbortController()
			const connecting = harness.connect({ signal: controller.signal })
			connecting.catch(() => {})
			await harness.until(() => harness.platform.open() > 0, 'connect contacts the platform')
			controller.abort()
			await harness.errorOf(connecting, 'connect throws when the signal aborts')
			await nothingIsOpen(harness, 'nothing stays open after the signal has aborted')
		},
	},
]

async function nothingIsOpen(harness: Parameters<Check['run']>[0], what: string): Promise<void> {
	await harness.until(() => harness.platform.open() === 0, what)
}

function isMethod(method: unknown, name: string, why?: string): void {
	must(typeof method === 'function', `a connection has ${name}()${why === undefined ? '' : `, as ${why} says`}`)
}

function checkAbilities({ formats, typing_ms, preview = {}, pace = {}, files }: ChannelAdapter['can']): void {
	must(formats.length > 0, 'can.formats has at least one format')
	for (const { markup, max_length, max_bytes = 256 } of formats) {
		must(isCount(max_bytes) && max_bytes >= 256, `max_bytes of ${markup} is a whole number of at least 256`)
		must(['markdown', 'html', 'plain'].includes(markup), `a markup is markdown, html or plain, not ${String(markup)}`)
		must(isCount(max_length) && max_length >= 100, `max_length of ${markup} is a whole number of at least 100`)
	}
	same(formats.at(-1)?.markup, 'plain', 'the last of can.formats is plain, which every platform accepts')
	must(typing_ms === undefined || (isCount(typing_ms) && typing_ms >= 1000), 'typing_ms is at least 1,000')
	for (const [kind, way] of Object.entries(preview)) {
		must(kind === 'private' || kind === 'group', `can.preview has private and group, not ${kind}`)
		must(way === 'draft' || way === 'edit', `can.preview.${kind} is draft or edit, not ${String(way)}`)
	}
	must(!files || (isCount(files.max_bytes) && files.max_bytes >= 1024), 'can.files.max_bytes is at least 1,024')
	for (const [name, ms] of Object.entries(pace)) must(isCount(ms), `can.pace.${name} is a whole number of milliseconds`)
}

function isCount(value: unknown): value is number {
	return Number.isSafeInteger(value) && (value as number) >= 0
}
