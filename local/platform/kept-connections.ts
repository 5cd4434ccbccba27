import http from 'node:http';

/**
 * Connections to what stands behind the gateway, each of which serves many calls, as a real gateway's do. One that rests is given up
 * long before PostgREST would, which closes it after half a minute, so that no call meets a closing one.
 */
export const keptConnections = new http.Agent({ keepAlive: true, timeout: 5_000 });
