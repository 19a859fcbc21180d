/** Removes undefined fields, for types and records in which a field is either set or absent. */
export function defined<T extends object>(fields: T): Defined<T> {
	return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
}

type Defined<T> = {
	[Key in keyof T as undefined extends T[Key] ? never : Key]: T[Key]
} & { [Key in keyof T as undefined extends T[Key] ? Key : never]?: Exclude<T[Key], undefined> }
