import { setTimeout as pause } from 'node:timers/promises'
import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault, isFault } from '../../core/errors.ts'
import { checkConfig } from '../../core/host/check-config.ts'
import {
	changeConfig,
	configFile,
	pathOf,
	placeIn,
	putSetting,
	readText,
	unsetSetting,
} from '../../core/host/config.ts'
import type { Context } from '../../core/plugin.ts'
import { digestOf } from '../../core/process/runtime-file.ts'
import type { FileView } from './contract.ts'
import { verdictOn, viewOf } from './file.ts'
import type { ConfigLocation } from './file.ts'
import { restoreValues } from './hidden-values.ts'

/** The limit of the file itself. */
const MAX_CHARACTERS = 1024 * 1024
/** A change that takes longer, such as one whose plugin starts slowly, is answered as `pending`. */
const WAIT_MS = 10_000
const POLL_MS = 30

const text = Joi.string()
	.max(MAX_CHARACTERS)
	.required()
	.description('The whole gateway.yaml. `(hidden 1)` and similar texts are placeholders for hidden values.')
	.example('server:\n  port: 3000\n')
const digest = Joi.string()
	.hex()
	.length(64)
	.required()
	.description('SHA-256 of the file on which the text is based, from GET /v1/config.')
	.example('5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef')

const key = Joi.string().max(512).example('server.port')
const set = Joi.object()
	.pattern(key, Joi.any())
	.max(100)
	.description('Settings by their path, such as `providers.local`; a section is replaced as a whole.')
	.example({ 'server.port': 8080 })
const unset = Joi.array()
	.items(key)
	.max(100)
	.description('Settings to remove, so that their defaults apply. They are removed before the others are set.')
	.example(['log.level'])

const problems = Joi.array()
	.items(
		Joi.object({
			path: Joi.string().allow('').required(),
			message: Joi.string().required(),
			line: Joi.number().integer(),
			column: Joi.number().integer(),
		}).example({ path: 'server.port', message: 'must be a number', line: 2, column: 9 }),
	)
	.required()
	.description('Each problem, at most 50. One without a line comes from the environment.')

const file = Joi.object({
	file: Joi.string().required().example('/home/ada/.svc/config/gateway.yaml'),
	text: text.allow(''),
	digest,
	state: Joi.valid('in_force', 'refused', 'pending')
		.required()
		.description(
			'`refused`: the last good configuration stays in force. `pending`: the gateway has not read the current file yet.',
		)
		.example('in_force'),
	error: Joi.string()
		.allow(null)
		.required()
		.description('Why the file is refused, with line and column.')
		.example(null),
	errors: problems.example([]),
}).id('Configuration')

const verdict = Joi.object({
	valid: Joi.boolean().required().example(true),
	error: Joi.string().allow(null).required().description('The problems, one per line.').example(null),
	errors: problems.example([]),
	warnings: Joi.array()
		.items(Joi.string())
		.required()
		.description('Valid settings that should be changed; plugins that would not start.')
		.example([]),
	changes: Joi.array()
		.items(
			Joi.object({
				path: Joi.string().required(),
				before: Joi.any(),
				after: Joi.any(),
				needs_restart: Joi.boolean().required(),
			}),
		)
		.required()
		.description('Settings that would change, secrets hidden. `needs_restart`: at the next start of the gateway only.')
		.example([{ path: 'server.port', before: 3000, after: 8080, needs_restart: false }]),
}).id('ConfigurationVerdict')

/** Without `auth`: only callers with the scope `*`, since the file decides what code the gateway runs. */
export function routes(server: Server, ctx: Context): void {
	const place: ConfigLocation = { home: ctx.gateway.home, env: ctx.env }

	server.route({
		method: 'GET',
		path: '/v1/config',
		options: {
			id: 'getConfiguration',
			description: 'Read gateway.yaml',
			notes: 'Values that look like secrets are hidden; references and names of secrets in the vault are shown.',
			tags: ['api', 'configuration'],
			response: { status: { 200: file } },
		},
		handler: () => viewOf(place),
	})
	server.route<{ Payload: { text: string } }>({
		method: 'POST',
		path: '/v1/config/validate',
		options: {
			id: 'validateConfiguration',
			description: 'Check a text for gateway.yaml, and show what it would change',
			notes: 'Changes nothing. Loads the third-party plugins that the text switches on, as the gateway would.',
			tags: ['api', 'configuration'],
			plugins: { auth: { changes: false } },
			payload: { maxBytes: 4 * MAX_CHARACTERS },
			validate: { payload: Joi.object({ text }) },
			response: { status: { 200: verdict } },
		},
		handler: ({ payload }) => verdictOn(place, restoreValues(payload.text, readText(configFile(place.home)))),
	})
	server.route<{ Payload: { text: string; digest: string } }>({
		method: 'PUT',
		path: '/v1/config',
		options: {
			id: 'setConfiguration',
			description: 'Replace gateway.yaml, and apply it',
			notes:
				'A text with a new error is refused (400), and the file stays unchanged. Answers once the gateway has applied or refused the text, or with `pending` after 10 s.',
			tags: ['api', 'configuration'],
			plugins: { openapi: { errors: [409] } },
			payload: { maxBytes: 4 * MAX_CHARACTERS },
			validate: { payload: Joi.object({ text, digest }) },
			response: { status: { 200: file } },
		},
		handler: ({ payload }) =>
			changed(place, (before) => {
				if (digestOf(before) === payload.digest) return restoreValues(payload.text, before)
				throw new Fault(
					'conflict',
					'gateway.yaml has changed since you read it; read it again with GET /v1/config, and repeat your change',
				)
			}),
	})
	server.route<{ Payload: { set?: Record<string, unknown>; unset?: string[] } }>({
		method: 'PATCH',
		path: '/v1/config',
		options: {
			id: 'changeSettings',
			description: 'Change single settings of gateway.yaml, and apply them',
			notes:
				'Either all or none apply; comments and everything else in the file stay unchanged. Refused and answered like PUT.',
			tags: ['api', 'configuration'],
			validate: { payload: Joi.object({ set, unset }).or('set', 'unset') },
			response: { status: { 200: file } },
		},
		handler: ({ payload: { set = {}, unset = [] } }) =>
			changed(place, (before) => {
				const without = unset.reduce(withoutSetting, before)
				return Object.entries(set).reduce((text, [key, value]) => putSetting(text, pathOf(key), value), without)
			}),
	})
}

/** A setting that is not in the file already has its default. */
function withoutSetting(text: string, key: string): string {
	try {
		return unsetSetting(text, placeIn(text, pathOf(key)))
	} catch (error) {
		if (isFault(error, 'not_found')) return text
		throw error
	}
}

async function changed(place: ConfigLocation, change: (before: string) => string): Promise<FileView> {
	await changeConfig({ ...place, change, check: async (config) => void (await checkConfig(config, place)) })
	return settled(place)
}

async function settled(place: ConfigLocation): Promise<FileView> {
	for (const end = performance.now() + WAIT_MS; ;) {
		const view = viewOf(place)
		if (view.state !== 'pending' || performance.now() > end) return view
		await pause(POLL_MS)
	}
}
