/**
 * joi, but a schema is built when it is first used: a start declares hundreds of schemas, and few are needed before the first
 * request. An error in a schema is also thrown at its first use, and the arguments of a schema must not change until then. So
 * settings, which each start checks, and third-party plugins use joi itself.
 */
import joi from 'joi'
import type { Root, Schema } from 'joi'

/** Methods that do not return a schema. */
const terminal: ReadonlySet<string> = new Set(['describe', 'isAsync', 'validate', 'validateAsync'])
/** Methods of joi that have the name of a method of schemas, but return none. */
const others: ReadonlySet<string> = new Set(['cache', 'extend'])
/** Methods of joi that return a schema: the types, and shortcuts for methods of `any`. */
const makers = Object.keys(joi).filter((name) => name in joi.types() || (name in joi.any() && !others.has(name)))

/** As joi's default export, except that `extend` accepts only schemas of joi itself. Import the types of schemas from joi. */
export const Joi = { ...joi, ...Object.fromEntries(makers.map((name) => [name, maker(name)])) } as Root

/** A schema that `build` returns at its first use. */
export function later<Kind extends Schema>(build: () => Kind): Kind {
	return new Later(build) as unknown as Kind
}

/**
 * A schema that is not built yet. A method that changes a schema returns another `Later`. Any other access first turns it, in
 * place, into the schema of joi; from then on it does not differ from that.
 */
class Later {
	#build: (() => Schema) | undefined

	constructor(build: () => Schema) {
		this.#build = build
	}

	static build(this: void, later: Later): Schema {
		const schema = later as unknown as Schema
		const built = later.#build?.()
		if (!built) return schema
		later.#build = undefined
		Object.setPrototypeOf(schema, Object.getPrototypeOf(built) as object)
		return Object.assign(schema, built)
	}
}

for (const type of Object.values(joi.types())) {
	for (let part = type as object; part !== Object.prototype; part = Object.getPrototypeOf(part) as object) {
		for (const name of Reflect.ownKeys(part)) {
			if (!Object.hasOwn(Later.prototype, name)) Object.defineProperty(Later.prototype, name, memberOf(part, name))
		}
	}
}

type Method = (...args: unknown[]) => unknown

function maker(name: string): Method {
	return (...args) => later(() => call(joi, name, args) as Schema)
}

/** The replacement of a schema's property. The properties by which joi and hapi recognize a schema do not build it. */
function memberOf(part: object, name: string | symbol): PropertyDescriptor {
	const { value } = Object.getOwnPropertyDescriptor(part, name) ?? {}
	if (typeof name === 'symbol' || name === 'isImmutable') return { value }
	if (typeof value !== 'function') return { get: property(name) }
	return { value: terminal.has(name) || !/^[a-z]/i.test(name) ? building(name) : chaining(name) }
}

function property(name: string): () => unknown {
	return function (this: Later) {
		return Reflect.get(Later.build(this), name)
	}
}

function building(name: string): Method {
	return function (this: Later, ...args) {
		return call(Later.build(this), name, args)
	} as Method
}

function chaining(name: string): Method {
	return function (this: Later, ...args) {
		return later(() => call(Later.build(this), name, args) as Schema)
	} as Method
}

function call(on: object, name: string, args: unknown[]): unknown {
	return (Reflect.get(on, name) as Method).apply(on, args)
}
