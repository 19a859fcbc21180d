/** Bodies with many optional fields, of which a request has few. */
import Joi from 'joi'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { later } from '../../core/util/lazy-joi.ts'

/** Sets of fields whose schemas are kept: a client sends the same few again and again. */
const SETS = 64

/**
 * Checks an object as `Joi.object({ ...required, ...optional })` does, but visits only the optional fields that it has: for fifty
 * absent ones joi takes longer than for everything else. No optional field may have a default, or refer to another field.
 */
export function presentFields(required: Joi.SchemaMap, optional: Joi.SchemaMap): Joi.ObjectSchema {
	const fields = Object.entries(optional)
	const known = new BoundedMap<string, Joi.ObjectSchema>(SETS)
	const schemaFor = (body: object): Joi.ObjectSchema => {
		const present = fields.filter(([name]) => Object.hasOwn(body, name))
		const set = present.map(([name]) => name).join()
		let schema = known.get(set)
		if (!schema) known.set(set, (schema = Joi.object({ ...required, ...Object.fromEntries(present) })))
		return schema
	}
	return later(() => {
		const root = Joi.extend({
			type: 'object',
			base: Joi.object(),
			validate: (body: object, { state, prefs }) => schemaFor(body).$_validate(body, state, prefs),
		}) as Joi.Root
		return root.object()
	})
}
