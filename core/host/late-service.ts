/**
 * A service as its plugin's own routes get it: each use reaches the service that is current then. A request may outlive the
 * instance whose routes it came by, and that instance's service is released.
 */
export function lateService<T>(own: T, current: () => unknown): T {
	if (typeof own !== 'object' || own === null) return own
	const target = (): object => current() as object
	return new Proxy(Object.create(null) as T & object, {
		get(_, key) {
			const service = target()
			const value: unknown = Reflect.get(service, key, service)
			// A class method can access its private fields only on the real object.
			return typeof value === 'function' ? value.bind(service) : value
		},
		has: (_, key) => Reflect.has(target(), key),
	})
}
