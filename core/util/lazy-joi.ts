/**
 * joi, but a schema is built when it is first used: a start declares hundreds of schemas, and few are needed before somebody sends
 * a request. A mistake in a schema is thrown at its first use, too, and what a schema is made of must not change until then. So
 * settings, which each start checks, and third-party plugins use joi itself.
 */
import joi from 'joi'
import type { Root, Schema } from 'joi'

/** Methods that do not return a schema. */
const answers: ReadonlySet<string> = new Set(['describe', 'isAsync', 'validate', 'validateAsync'])
/** Methods of joi that have the name of a method of schemas, but make none. */
const others: ReadonlySet<string> = new Set(['cache', 'extend'])
/** Methods of joi that make a schema: the types, and shortcuts for methods of `any`. */
const makers = Object.keys(joi).filter((name) => name in joi.types() || (name in joi.any() && !others.has(name)))

/** As joi's default export, except that `extend` takes only schemas of joi itself. Types of schemas are in joi. */
export const Joi = { ...joi, ...Object.fromEntries(makers.map((name) => [name, maker(name)])) } as Root

/** The schema that `build` returns, when it is first used. */
export function later<Kind extends Schema>(build: () => Kind): Kind {
	return new Later(build) as unknown as Kind
}

/**
 * A schema that is not built yet. A method that changes a schema returns another one of these. Whatever else is asked of it, it
 * first becomes, in place, what joi builds; from then on it does not differ from that.
 */
class Later {
	#build: (() => Schema) | undefined

	constructor(build: () => Schema) {
		this.#build = build
	}

	static build(this: void, one: Later): Schema {
		const schema = one as unknown as Schema
		const built = one.#build?.()
		if (!built) return schema
		one.#build = undefined
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

/** What stands for a property of a schema. What joi and hapi read to recognize a schema does not build it. */
function memberOf(part: object, name: string | symbol): PropertyDescriptor {
	const { value } = Object.getOwnPropertyDescriptor(part, name) ?? {}
	if (typeof name === 'symbol' || name === 'isImmutable') return { value }
	if (typeof value !== 'function') return { get: property(name) }
	return { value: answers.has(name) || !/^[a-z]/i.test(name) ? answering(name) : changing(name) }
}

function property(name: string): () => unknown {
	return function (this: Later) {
		return Reflect.get(Later.build(this), name)
	}
}

function answering(name: string): Method {
	return function (this: Later, ...args) {
		return call(Later.build(this), name, args)
	} as Method
}

function changing(name: string): Method {
	return function (this: Later, ...args) {
		return later(() => call(Later.build(this), name, args) as Schema)
	} as Method
}

function call(on: object, name: string, args: unknown[]): unknown {
	return (Reflect.get(on, name) as Method).apply(on, args)
}
