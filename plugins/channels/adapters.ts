/** The adapters that running plugins add. They may be third-party code: each is validated once, and invalid ones are skipped. */
import Joi from 'joi'
import type { FieldError } from '../../core/errors.ts'
import { messageOf } from '../../core/errors.ts'
import type { Extension } from '../../core/plugin.ts'
import type { ChannelAdapter } from './adapter.ts'
import { commonConfigOf, webSchemes } from './schemas.ts'

/** A `ChannelAdapter` that was validated, with defaults. */
export interface Adapter extends Readonly<
	Required<Pick<ChannelAdapter, 'type' | 'aliases' | 'label' | 'can' | 'schemes'>>
> {
	/** As in `ChannelAdapter`. */
	readonly unguarded: ReadonlySet<string>
	/** The plugin's own object. */
	readonly adapter: ChannelAdapter
	/** Runs calls of the adapter and its connections, so that uncaught errors are attributed to its plugin. */
	readonly run: Extension<'channel'>['run']
	/** Validates a channel's `config`. Returns it with defaults, or the errors. */
	check(config: object): { config: Record<string, unknown> } | { errors: FieldError[] }
}

export interface Adapters {
	/** By type or alias. */
	find(type: string): Adapter | undefined
	/** By type. */
	readonly all: ReadonlyMap<string, Adapter>
	/** One sentence for each adapter that cannot be used. */
	readonly problems: readonly string[]
}

const word = Joi.string().pattern(/^[a-z0-9_]{1,32}$/, '1 to 32 of a-z 0-9 _')
const ms = Joi.number().min(0).max(86_400_000)
const preview = Joi.valid('draft', 'edit')
const adapterSchema = Joi.object<Omit<ChannelAdapter, 'config'> & { config: unknown }>({
	type: word.required(),
	aliases: Joi.array().items(word).max(16),
	label: Joi.string().min(1).max(64).required(),
	connect: Joi.function().required(),
	config: Joi.function(),
	// `api_root` can never be unguarded: it determines where the token is sent.
	schemes: Joi.array()
		.items(Joi.string().pattern(/^[a-z][a-z0-9+.-]{0,31}$/, 'a scheme in lower case'))
		.min(1)
		.max(16),
	unguarded: Joi.array().items(Joi.string().min(1).max(64).invalid('api_root')).max(64),
	can: Joi.object({
		formats: Joi.array()
			.items(
				Joi.object({
					markup: Joi.valid('markdown', 'html', 'plain').required(),
					max_length: Joi.number().integer().min(16).max(1_000_000).required(),
					max_bytes: Joi.number().integer().min(256).max(4_000_000),
				}),
			)
			.min(1)
			.max(8)
			.required(),
		typing_ms: ms.min(100),
		preview: Joi.object({ private: preview, group: preview }),
		pace: Joi.object({ chat_ms: ms, group_ms: ms, channel_ms: ms }),
		files: Joi.object({
			max_bytes: Joi.number()
				.integer()
				.min(1)
				.max(2 ** 32)
				.required(),
		}),
	}).required(),
})
	.required()
	.prefs({ convert: false, errors: { label: 'path' } })

/** By the plugin's object: its adapter, or the problem with it. */
const cache = new WeakMap<object, Adapter | string>()

export function adaptersOf(extensions: readonly Extension<'channel'>[]): Adapters {
	const all = new Map<string, Adapter>()
	const problems: string[] = []
	for (const extension of extensions) {
		const found = adapterOf(extension, all.values())
		if (typeof found === 'string')
			problems.push(`plugin "${extension.plugin}" adds a channel that cannot be used: ${found}`)
		else all.set(found.type, found)
	}
	const find = (type: string): Adapter | undefined =>
		all.get(type) ?? all.values().find(({ aliases }) => aliases.includes(type))
	return { all, problems, find }
}

/** The problem with the adapter of `extension`, including conflicts with earlier `extensions`; null if it is valid. */
export function adapterProblem(
	extension: Extension<'channel'>,
	extensions: readonly Extension<'channel'>[],
): string | null {
	const before = extensions.slice(0, extensions.indexOf(extension))
	const found = adapterOf(extension, adaptersOf(before).all.values())
	return typeof found === 'string' ? found : null
}

/** The adapter, or the problem with it. `before`: adapters that take precedence. */
function adapterOf({ value, run }: Extension<'channel'>, before: Iterable<Adapter>): Adapter | string {
	if (typeof value !== 'object' || value === null) return 'it is not an object'
	// The same adapter for the same object: a connection is kept only while its adapter stays the same.
	const found = cache.get(value) ?? parseAdapter(value, run)
	cache.set(value, found)
	if (typeof found === 'string') return found
	const isTaken = [...before].some(({ type, aliases }) => type === found.type || aliases.includes(found.type))
	return isTaken ? `another channel has the type or alias ${found.type}` : found
}

function parseAdapter(adapter: ChannelAdapter, run: Adapter['run']): Adapter | string {
	try {
		const { type, aliases, label, can, connect, config, unguarded, schemes } = adapter
		const parts = { type, aliases, label, can, connect, config, unguarded, schemes }
		const { error, value } = adapterSchema.validate(parts)
		if (error) return error.message
		const own: unknown = config?.call(adapter, Joi) ?? Joi.object()
		if (!isObjectSchema(own)) return 'config(joi) must return joi.object(…)'
		const schema = commonConfigOf(value.schemes).concat(own).unknown()
		return {
			type,
			aliases: [...(value.aliases ?? [])],
			label,
			can: structuredClone(value.can),
			unguarded: new Set(value.unguarded),
			schemes: value.schemes ?? webSchemes,
			adapter,
			run,
			check: (wanted) => checkBy(schema, wanted),
		}
	} catch (error) {
		return messageOf(error)
	}
}

/** Checked explicitly, since the schema of the common keys is built lazily and would reject another kind only at its first use. */
function isObjectSchema(value: unknown): value is Joi.ObjectSchema {
	return Joi.isSchema(value) && value.type === 'object'
}

function checkBy(schema: Joi.ObjectSchema, config: object): ReturnType<Adapter['check']> {
	try {
		const { error, value } = schema.validate(config, { convert: false, abortEarly: false })
		if (!error) return { config: value as Record<string, unknown> }
		return { errors: error.details.map(({ path, message }) => ({ path: ['config', ...path].join('.'), message })) }
	} catch (error) {
		return { errors: [{ path: 'config', message: `the adapter cannot check it: ${messageOf(error)}` }] }
	}
}
