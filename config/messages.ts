import type { LanguageMessages } from 'joi'

/**
 * Replaces joi's messages by ones that say what to change in YAML. No message repeats the value, which may be a key.
 */
export const messages: LanguageMessages = {
	'any.only': 'must be {if(#valids.length == 1, "", "one of ")}{{#valids}}',
	'any.required': 'is missing',
	'alternatives.types': 'must be true, false or a map of settings',
	'array.base': 'must be a list',
	'array.max': 'may have at most {{#limit}} entries',
	'array.unique': 'is in the list twice; remove one',
	'boolean.base': 'must be true or false',
	'number.base': 'must be a whole number',
	'number.infinity': 'must be a whole number',
	'number.integer': 'must be a whole number',
	'number.max': 'must be at most {{#limit}}',
	'number.min': 'must be at least {{#limit}}',
	'number.unsafe': 'must be a whole number of at most 15 digits',
	'object.base': 'must be a map of settings',
	'object.max': 'may have at most {{#limit}} entries',
	'object.unknown': 'is not a known setting',
	'string.base': 'must be text; put it in quotes',
	'string.empty': 'must not be empty',
	'string.max': 'must have at most {{#limit}} characters',
	'string.pattern.name': 'must be {{#name}}',
}
