/** Builders for schemas of settings. They append the default to the description. */
import { isIP } from 'node:net'
import joi from 'joi'
import type { ArraySchema, BooleanSchema, CustomHelpers, NumberSchema, ObjectSchema, StringSchema } from 'joi'

/** All settings of a plugin: the compiler requires a schema for each key of their type. `Read`: the keys that `reads` adds. */
export function allSettings<Settings, Read extends keyof Settings = never>(keys: {
	[Key in Exclude<keyof Settings, Read>]-?: joi.Schema
}): ObjectSchema<Settings> {
	return joi.object(keys)
}

/** A whole number. */
export function count(min: number, max: number, fallback: number, description: string): NumberSchema {
	return joi
		.number()
		.integer()
		.min(min)
		.max(max)
		.default(fallback)
		.description(`${sentence(description)} Default ${fallback}.`)
}

/** A boolean. `description`: without the default, which is appended. */
export function flag(fallback: boolean, description: string): BooleanSchema {
	return joi
		.boolean()
		.default(fallback)
		.description(`${sentence(description)} Default ${fallback}.`)
}

/** A map of settings. It is null if all its settings are commented out, which means all defaults. */
export function section(description: string, keys: Record<string, joi.Schema>): ObjectSchema {
	return joi.object(keys).empty(null).default().description(description)
}

/** Empty by default. */
export function list(items: joi.Schema, max: number, description: string): ArraySchema {
	return joi
		.array()
		.items(items)
		.max(max)
		.empty(null)
		.default([])
		.description(`${sentence(description)} Default none.`)
}

/** A list of hosts, each `host` or `host:port`. */
export function hostsAndPorts(description: string): ArraySchema {
	return list(joi.string().max(300).custom(hostAndPort).description('A host, or host:port.'), 256, description).unique()
}

/** A host name or IP address. The value has the form in which a `Host` header is compared: lower case, IPv6 without brackets. */
export function host(): StringSchema {
	return joi.string().max(253).custom(hostName)
}

/** An origin as a browser sends it in `Origin`: scheme, host, and the port unless it is the scheme's default. In lower case. */
export function origin(): StringSchema {
	return joi.string().max(300).custom(webOrigin)
}

/** An http or https address; the default is null. `nullMeans`: the meaning of null, for the description. */
export function addressOrNull(example: string, nullMeans: string, description: string): StringSchema {
	return (
		joi
			.string()
			.max(2048)
			// Not joi's uri(), whose regular expression takes 10 ms to compile at every start.
			.pattern(/^https?:\/\/\S+$/, `an address such as ${example}`)
			.allow(null)
			.default(null)
			.description(`${sentence(description)} null: ${nullMeans}. Default null.`)
	)
}

/** For event streams: the interval of keep-alive comments. */
export function heartbeat(): NumberSchema {
	return count(1, 60, 15, 'Seconds without data after which a stream gets a comment.')
}

/** For event streams: the time after which a client is too slow. */
export function stallTimeout(): NumberSchema {
	return count(1, 300, 30, 'Seconds for which a client may read nothing before its stream is closed.')
}

function sentence(text: string): string {
	return /[.;]$/.test(text) ? text : `${text}.`
}

function hostAndPort(text: string, helpers: CustomHelpers): unknown {
	if (isIP(text) !== 0) return text
	const url = URL.parse(`http://${text}/`)
	if (url && url.pathname === '/' && !url.username && !url.search && !/[/?#@\\]/.test(text)) return text
	return helpers.message({
		custom: 'must be a host name or address, with or without a port, such as 10.0.0.5 or wiki.lan:8080',
	})
}

function webOrigin(text: string, helpers: CustomHelpers): unknown {
	const url = /^https?:\/\/[^/?#@\\*]+\/?$/i.test(text) ? URL.parse(text) : null
	if (url) return url.origin
	return helpers.message({
		custom: 'must be an origin such as https://app.example.com, without a path; list each one, there is no wildcard',
	})
}

function hostName(text: string, helpers: CustomHelpers): unknown {
	const bare = text.replace(/^\[(.*)\]$/, '$1').toLowerCase()
	if (isIP(bare) || /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/.test(bare)) return bare
	return helpers.message({ custom: 'must be a host name or IP address without scheme, port or path' })
}
